"""Listeners: TensorBoard and the progress bar."""

import threading

import pytest

from prism_motor._console import Progress
from prism_motor.train.listeners import TensorBoard, TrainingProgress


def test_progress_counts_updates_even_if_rows_are_rare(capsys):
    with Progress("", 12, done=4, every=0.0) as progress:
        listener = TrainingProgress(progress, lambda row: f"loss {row['loss']:.2f}")
        listener({"update": 8, "loss": 0.5})
        listener({"update": 12, "loss": 0.25})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("8/12  loss 0.50  left ")
    assert lines[1].startswith("12/12  loss 0.25  (")


def test_a_full_disk_is_raised_where_rows_are_written_and_not_printed_by_a_thread(tmp_path, capfd):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    hook = threading.excepthook
    board = TensorBoard(tmp_path)
    records = board.writer._get_file_writer().event_writer._async_writer._worker._record_writer

    def full(_data):
        raise OSError(28, "No space left on device")

    records.write = full
    board({"update": 1, "loss": 0.5})
    with pytest.raises(OSError, match="No space left"):
        board.close()
    assert "Traceback" not in capfd.readouterr().err
    assert threading.excepthook is hook


def test_tensorboard_drops_points_after_the_checkpoint_that_a_run_goes_on_from(tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for first, last, done in ((1, 4, 0), (3, 5, 2)):
        board = TensorBoard(tmp_path, done)
        for update in range(first, last + 1):
            board({"update": update, "loss": update / 2, "loss/value": 1.0})
        board.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert sorted(events.Tags()["scalars"]) == ["loss", "loss/value"]
    assert [event.step for event in events.Scalars("loss")] == [1, 2, 3, 4, 5]
