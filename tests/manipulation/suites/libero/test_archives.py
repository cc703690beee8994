"""Archives from elsewhere: what is not plain files in one folder is refused, with one message."""

import io
import stat
import struct
import tarfile
import zipfile

import pytest

from prism_motor._checks import InputError
from prism_motor.manipulation.suites.libero.archives import unpack


@pytest.fixture
def inside(tmp_path):
    """The folder to unpack into; nothing may appear beside it."""
    folder = tmp_path / "around" / "inside"
    folder.mkdir(parents=True)
    return folder


def make_zip(file, entries):
    with zipfile.ZipFile(file, "w") as archive:
        for entry in entries:
            archive.writestr(*entry)
    return file


def make_tar(file, members):
    with tarfile.open(file, "w") as archive:
        for member, contents in members:
            member.size = len(contents)
            archive.addfile(member, io.BytesIO(contents))
    return file


def zip_link(name, target):
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info, target


def member(name, kind=tarfile.REGTYPE, linkname=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, linkname
    return info


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_files_and_folders_are_unpacked(kind, inside, tmp_path):
    if kind == "zip":
        archive = make_zip(tmp_path / "a.zip", [("a/b/c.txt", "one"), ("a/empty/", ""), ("d", "")])
    else:
        folder = member("a/empty", tarfile.DIRTYPE)
        contents = [(member("a/b/c.txt"), b"one"), (folder, b""), (member("d"), b"")]
        archive = make_tar(tmp_path / "a.tar", contents)
    unpack(archive, inside)
    assert (inside / "a" / "b" / "c.txt").read_text() == "one"
    assert (inside / "a" / "empty").is_dir()
    assert (inside / "d").read_bytes() == b""


OUT = ["../out", "a/../../out", "/tmp/prism-out", "..\\out", "C:\\out", "\\\\host\\share\\out"]


@pytest.mark.parametrize("name", OUT)
def test_no_name_leads_out(name, inside, tmp_path):
    for archive in (
        make_zip(tmp_path / "a.zip", [(name, "x")]),
        make_tar(tmp_path / "a.tar", [(member(name), b"x")]),
    ):
        with pytest.raises(InputError, match="leads out of its folder"):
            unpack(archive, inside)
    assert list(inside.parent.rglob("*")) == [inside]


def test_links_and_devices_are_refused(inside, tmp_path):
    kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE)
    archives = [
        make_tar(tmp_path / f"{i}.tar", [(member("a", kind, ".."), b""), (member("a/x"), b"x")])
        for i, kind in enumerate(kinds)
    ]
    archives.append(make_zip(tmp_path / "a.zip", [zip_link("a", ".."), ("a/x", "x")]))
    for archive in archives:
        with pytest.raises(InputError, match="link or a device"):
            unpack(archive, inside)
    assert list(inside.parent.rglob("*")) == [inside]


def test_encrypted_files_are_named(inside, tmp_path):
    archive = make_zip(tmp_path / "a.zip", [("secret", "x")])
    raw = bytearray(archive.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(signature) + offset] |= 1  # the flag of encryption
    archive.write_bytes(raw)
    with pytest.raises(InputError, match="'secret' in it is encrypted"):
        unpack(archive, inside)


def test_absurd_sizes_are_refused_before_anything_is_written(inside, tmp_path):
    many = make_zip(tmp_path / "many.zip", [(f"{i}", "x") for i in range(20)])
    data = bytearray(many.read_bytes())
    place = -1
    while (place := data.find(b"PK\x01\x02", place + 1)) >= 0:
        struct.pack_into("<I", data, place + 24, 2**32 - 2)  # 20 times 4 GB
    many.write_bytes(data)
    sparse = member("huge")
    sparse.size = 10**15
    with tarfile.open(tmp_path / "a.tar", "w") as opened:
        opened.addfile(sparse)
    for bomb in (many, tmp_path / "a.tar"):
        with pytest.raises(InputError, match=r"more than this disk|not a complete archive"):
            unpack(bomb, inside)
    assert sum(file.stat().st_size for file in inside.rglob("*") if file.is_file()) < 100


@pytest.mark.parametrize("kind", ["zip", "gz", "xz", "bz2"])
def test_every_cut_and_many_changes_give_one_message(kind, inside, tmp_path):
    """An archive with a byte missing or changed is unpacked or refused; nothing else happens."""
    archive = tmp_path / f"a.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
            opened.writestr("a/b", "one" * 20)
    else:
        with tarfile.open(archive, f"w:{kind}") as opened:
            info = member("a/b")
            info.size = 60
            opened.addfile(info, io.BytesIO(b"one" * 20))
    whole = archive.read_bytes()
    refused = 0
    changes = [whole[:length] for length in range(0, len(whole), 3)]
    changes += [
        whole[:i] + bytes([whole[i] ^ 0xFF]) + whole[i + 1 :] for i in range(0, len(whole), 2)
    ]
    for changed in changes:
        archive.write_bytes(changed)
        try:
            unpack(archive, inside)
        except InputError:
            refused += 1
    assert refused > len(changes) / 2
    assert {path.name for path in inside.parent.iterdir()} == {"inside"}
