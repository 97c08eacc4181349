#!/usr/bin/env python3
"""Reads data and weights from PyPI's moto, a server of S3 that looks at signatures.

    tests/remote/real_s3.py --bin BUILD/bin --scratch FOLDER

FOLDER gets a virtual environment, which the next run goes on with. Exit code 0: what comes from S3 is what
lies here, and a wrong secret is refused.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import time
import venv

# The first calls set users and buckets up, and nobody looks at their signatures.
SET_UP = """
import json, sys, boto3
address, folder = sys.argv[1:]
common = dict(endpoint_url=address, region_name='us-east-1', aws_access_key_id='x',
              aws_secret_access_key='y')
iam, s3 = boto3.client('iam', **common), boto3.client('s3', **common)
iam.create_user(UserName='reader')
key = iam.create_access_key(UserName='reader')['AccessKey']
iam.put_user_policy(UserName='reader', PolicyName='all', PolicyDocument=json.dumps(
    {'Version': '2012-10-17', 'Statement': [{'Effect': 'Allow', 'Action': '*', 'Resource': '*'}]}))
s3.create_bucket(Bucket='bucket')
with open(folder + '/digits_lmdb/data.mdb', 'rb') as file:
    s3.put_object(Bucket='bucket', Key='digits_lmdb/data.mdb', Body=file.read())
with open(folder + '/large.csv', 'rb') as file:
    data = file.read()
upload = s3.create_multipart_upload(Bucket='bucket', Key='large.csv')['UploadId']
parts, size = [], 6 << 20
for number, begin in enumerate(range(0, len(data), size), 1):
    tag = s3.upload_part(Bucket='bucket', Key='large.csv', UploadId=upload, PartNumber=number,
                         Body=data[begin:begin + size])['ETag']
    parts.append({'ETag': tag, 'PartNumber': number})
s3.complete_multipart_upload(Bucket='bucket', Key='large.csv', UploadId=upload,
                             MultipartUpload={'Parts': parts})
print(json.dumps({'calls': 7 + len(parts), 'id': key['AccessKeyId'],
                  'secret': key['SecretAccessKey']}))
"""
PARTS = 3


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def write_table(path, rows, seed):
    numbers = random.Random(seed)
    with open(path, "w", encoding="ascii") as file:
        for row in range(rows):
            file.write(",".join(str(numbers.randrange(256)) for _ in range(784)) + f",{row % 10}\n")


def convert(options, source, target, environment=None):
    return subprocess.run([f"{options.bin}/speedo", "convert", "csv", source, target, "--shape", "1,28,28"],
                          env=environment, capture_output=True, text=True, check=False)


def check(what, condition, detail=""):
    print(("ok: " if condition else "FAILED: ") + what)
    if not condition:
        print(detail)
        sys.exit(1)


def read_from(address, key, options, folder):
    environment = dict(os.environ, AWS_ENDPOINT_URL=address, AWS_ACCESS_KEY_ID=key["id"],
                       AWS_SECRET_ACCESS_KEY=key["secret"], AWS_REGION="us-east-1",
                       XDG_CACHE_HOME=str(folder / "cache"))
    here = convert(options, folder / "large.csv", folder / "here_lmdb")
    there = convert(options, "s3://bucket/large.csv", folder / "there_lmdb", environment)
    check("a table uploaded in parts, converted", there.returncode == 0, there.stderr)
    same = (folder / "here_lmdb/data.mdb").read_bytes() == (folder / "there_lmdb/data.mdb").read_bytes()
    check("gives the database that the local table gives", here.returncode == 0 and same)
    mean = subprocess.run([f"{options.bin}/speedo", "compute_image_mean", "s3://bucket/digits_lmdb",
                           folder / "there.binaryproto"], env=environment, capture_output=True, text=True,
                          check=False)
    check("the mean of an LMDB on S3", mean.returncode == 0, mean.stderr)
    subprocess.run([f"{options.bin}/speedo", "compute_image_mean", folder / "digits_lmdb",
                    folder / "here.binaryproto"], check=True, capture_output=True)
    check("is that of the LMDB here",
          (folder / "there.binaryproto").read_bytes() == (folder / "here.binaryproto").read_bytes())
    stranger = dict(environment, AWS_SECRET_ACCESS_KEY="wrong", XDG_CACHE_HOME=str(folder / "cache2"))
    refused = convert(options, "s3://bucket/large.csv", folder / "no_lmdb", stranger)
    check("a wrong secret is refused", refused.returncode == 77, refused.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--scratch", required=True, type=pathlib.Path)
    options = parser.parse_args()
    python = options.scratch / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(options.scratch / "venv", with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "moto[server]", "boto3"], check=True)
    folder = options.scratch / "data"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    write_table(folder / "digits.csv", 40, 1)
    write_table(folder / "large.csv", 5000, 2)
    convert(options, folder / "digits.csv", folder / "digits_lmdb").check_returncode()
    port = free_port()
    environment = dict(os.environ, INITIAL_NO_AUTH_ACTION_COUNT=str(7 + PARTS))
    with open(folder / "server.log", "w", encoding="utf-8") as log:
        server = subprocess.Popen([python, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                                  env=environment, stdout=log, stderr=log)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        made = subprocess.run([python, "-c", SET_UP, f"http://127.0.0.1:{port}", folder], check=True,
                              capture_output=True, text=True)
        key = json.loads(made.stdout)
        check("the set-up takes the calls that are let through", key["calls"] == 7 + PARTS, made.stdout)
        read_from(f"http://127.0.0.1:{port}", key, options, folder)
    finally:
        server.kill()
        server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
