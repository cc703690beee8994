from prism_motor._columns import align_columns


def test_the_first_column_is_flush_left_and_the_others_right():
    text = align_columns([["", "a", "long"], ["name", "12", "3"], ["x", "", ""]])
    assert text.split("\n") == ["       a  long", "name  12     3", "x"]
