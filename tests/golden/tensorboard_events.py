#!/usr/bin/env python3
"""Prints a few events as TensorBoard itself writes them, in hexadecimal digits: what a test of src/training/tensorboard.rs expects.

    pip install tensorboard==2.20.0
    python tests/golden/tensorboard_events.py            # print them
    python tests/golden/tensorboard_events.py --check    # compare them with the test
"""

import io
import re
import sys
from pathlib import Path

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter


def written() -> str:
    summary = summary_pb2.Summary()
    summary.value.add(tag="loss", simple_value=0.25)
    summary.value.add(tag="token_accuracy", simple_value=0.0)
    start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    file = io.BytesIO()
    writer = RecordWriter(file)
    for event in [
        event_pb2.Event(wall_time=1.0, file_version="brain.Event:2"),
        event_pb2.Event(wall_time=1.25, step=3, session_log=start),
        event_pb2.Event(wall_time=1.5, step=3, summary=summary),
    ]:
        writer.write(event.SerializeToString())
    return file.getvalue().hex()


if __name__ == "__main__":
    if "--check" in sys.argv:
        source = Path(__file__).resolve().parents[2] / "src/training/tensorboard.rs"
        joined = re.sub(r"\\\n\s*", "", source.read_text())
        assert f'"{written()}"' in joined, "the test expects something else"
        print("the test expects what TensorBoard writes")
    else:
        print(written())
