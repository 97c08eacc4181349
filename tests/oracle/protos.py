"""`pb`: the messages of proto/caffe.proto, compiled for this process in a temporary folder."""

import pathlib
import subprocess
import sys
import tempfile

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"


def compiled():
    with tempfile.TemporaryDirectory() as folder:
        command = ["protoc", f"-I{PROTO}", f"--python_out={folder}", str(PROTO / "caffe.proto")]
        subprocess.run(command, check=True)
        sys.path.insert(0, folder)
        try:
            import caffe_pb2
        finally:
            sys.path.remove(folder)
    return caffe_pb2


pb = compiled()
