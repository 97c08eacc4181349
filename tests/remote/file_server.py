#!/usr/bin/env python3
"""Serves the files of a folder as servers do, and as they should not, for the tests of src/remote.

    file_server.py FOLDER [--tls CERT KEY]      prints its port, and serves until it is killed

A path may begin with what is to go wrong: /cut=65536/data.bin ends each body after 65536 bytes.
/_struck tells how often each fault has struck, /_requests how many requests came of each method.

    /s3/BUCKET/KEY      S3: the signature (AWS Signature Version 4) must be KEY_ID's
    /webhdfs/v1/PATH    WebHDFS: OPEN is redirected to a DataNode, which is this server, too
"""

import argparse
import base64
import collections
import hashlib
import hmac
import http.server
import json
import os
import re
import ssl
import threading
import time
import urllib.parse

KEY_ID, SECRET, TOKEN = 'KEYOFTESTS', 'a secret/of+tests', 'a token/of+tests='
FAULTS = {'noranges', 'cut', 'short', 'long', 'other', 'othermd5', 'range', 'total', 'stall', 'busy',
          'status', 'redirect', 'loop', 'changes', 'nolength', 'headers', 'garbage', 'huge', 'basic',
          'nohead', 'drip', 'toomuch', 'cutwhole', 'replaced', 'tags', 'zero',
          'encoded'}

lock = threading.Lock()
struck, requests, seen = collections.Counter(), collections.Counter(), collections.Counter()


def strike(fault):
    with lock:
        struck[fault] += 1


def version_headers(argument):
    """No ETag where the argument of a fault says that the server tells no version."""
    return {'ETag': None} if argument == 'untold' else {}


def hashed(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(method, target, headers):
    """What the signature of a request must be, by the rules of AWS' Signature Version 4."""
    given = headers.get('Authorization', '')
    match = re.fullmatch(r'AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, '
                         r'SignedHeaders=([^,]+), Signature=([0-9a-f]{64})', given)
    if not match or match[1] != KEY_ID:
        return None, 'InvalidAccessKeyId'
    names = match[4].split(';')
    for needed in ('host', 'x-amz-content-sha256', 'x-amz-date', 'x-amz-security-token'):
        if needed in names or (needed == 'x-amz-security-token' and needed not in headers):
            continue
        return None, 'AccessDenied'
    path, _, query = target.partition('?')
    canonical = '\n'.join([method, path, query] +
                          ['%s:%s' % (name, headers[name].strip()) for name in sorted(names)] +
                          ['', match[4], headers['x-amz-content-sha256']])
    scope = '%s/%s/s3/aws4_request' % (match[2], match[3])
    text = '\n'.join(['AWS4-HMAC-SHA256', headers['x-amz-date'], scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    key = ('AWS4' + SECRET).encode()
    for part in (match[2], match[3], 's3', 'aws4_request'):
        key = hashed(key, part)
    if hashed(key, text).hex() != match[5]:
        return None, 'SignatureDoesNotMatch'
    return match[5], None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        with lock:
            requests[self.command] += 1
        if self.path in ('/_struck', '/_requests'):
            counts = struck if self.path == '/_struck' else requests
            return self.send(200, json.dumps(counts).encode(), Connection='close')
        if self.path.startswith('/s3/'):
            return self.answer_s3()
        path, _, query = self.path.partition('?')
        if path.startswith('/webhdfs/v1/'):
            return self.answer_hdfs(path[len('/webhdfs/v1'):], urllib.parse.parse_qs(query))
        if path.startswith('/datanode/'):
            asked = urllib.parse.parse_qs(query)
            begin, length = int(asked['offset'][0]), int(asked['length'][0])
            data = self.content(path[len('/datanode'):])
            return self.send(200, data[begin:begin + length])
        fault, _, argument = path.split('/')[1].partition('=')
        if fault in FAULTS:
            return self.answer_badly(fault, argument, '/' + '/'.join(path.split('/')[2:]))
        return self.answer_file(path)

    # --- as servers do

    def content(self, path):
        """The file's bytes; None if there is no such file."""
        name = os.path.join(self.server.folder, urllib.parse.unquote(path).lstrip('/'))
        if not os.path.isfile(name):
            return None
        with open(name, 'rb') as file:
            return file.read()

    def send(self, status, body=b'', **headers):
        self.send_response(status)
        headers.setdefault('Content_Length', str(len(body)))
        for name, value in headers.items():
            if value is not None:
                self.send_header(name.replace('_', '-'), value)
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def span(self, size):
        match = re.fullmatch(r'bytes=(\d+)-(\d+)', self.headers.get('Range', ''))
        return (int(match[1]), min(int(match[2]) + 1, size)) if match else None

    def answer_file(self, path, missing=b'', **headers):
        data = self.content(path)
        if data is None:
            return self.send(404, missing)
        headers.setdefault('ETag', '"%s"' % hashlib.md5(data).hexdigest())
        span = self.span(len(data))
        if span is None:
            return self.send(200, data, Accept_Ranges='bytes', **headers)
        if span[0] >= len(data):
            return self.send(416, Content_Range='bytes */%d' % len(data))
        return self.send(206, data[span[0]:span[1]], Accept_Ranges='bytes', **headers,
                         Content_Range='bytes %d-%d/%d' % (span[0], span[1] - 1, len(data)))

    def answer_s3(self):
        found, code = signature(self.command, self.path, self.headers)
        if self.headers.get('x-amz-security-token', TOKEN) != TOKEN:
            found, code = None, 'InvalidToken'
        if not found:
            return self.send(403, b'<Error><Code>%s</Code></Error>' % code.encode())
        headers = {}
        data = self.content(self.path[len('/s3'):])
        if self.headers.get('x-amz-checksum-mode') == 'ENABLED' and data is not None:
            digest = hashlib.sha256(data).digest()
            headers['x_amz_checksum_sha256'] = base64.b64encode(digest).decode()
        return self.answer_file(self.path[len('/s3'):], b'<Error><Code>NoSuchKey</Code></Error>',
                                **headers)

    def answer_hdfs(self, path, query):
        operation = query['op'][0]
        data = self.content(path)
        if data is None:
            return self.send(404, b'{"RemoteException": {"exception": "FileNotFoundException"}}')
        if operation == 'OPEN':
            place = 'http://%s/datanode%s?%s' % (
                self.headers['Host'], path,
                urllib.parse.urlencode({name: values[0] for name, values in query.items()}))
            return self.send(307, Location=place)
        name = os.path.join(self.server.folder, urllib.parse.unquote(path).lstrip('/'))
        status = {'length': len(data), 'type': 'FILE', 'fileId': 7, 'blockSize': 1 << 27,
                  'modificationTime': os.stat(name).st_mtime_ns // 1000000}
        return self.send(200, json.dumps({'FileStatus': status}).encode())

    # --- as they should not

    def answer_badly(self, fault, argument, path):
        if self.command == 'HEAD' and fault not in ('nohead', 'status', 'huge', 'headers', 'garbage',
                                                    'redirect', 'loop', 'basic', 'changes', 'busy',
                                                    'nolength', 'noranges', 'cutwhole', 'replaced', 'tags',
                                                    'zero'):
            return self.answer_file(path)
        getattr(self, 'do_' + fault)(argument, path)

    def body_of(self, path):
        """The asked span of the file, its bytes and the headers that tell of it."""
        data = self.content(path)
        begin, end = self.span(len(data)) or (0, len(data))
        return data[begin:end], {'ETag': '"%s"' % hashlib.md5(data).hexdigest(),
                                 'Content_Range': 'bytes %d-%d/%d' % (begin, end - 1, len(data))}

    def hang_up(self):
        self.wfile.flush()
        self.close_connection = True

    def do_noranges(self, _, path):
        strike('noranges')
        self.send(200, self.content(path), ETag='"1"')

    def do_cut(self, argument, path):
        body, headers = self.body_of(path)
        if len(body) > int(argument):
            strike('cut')
        self.send(206, body[:int(argument)], Content_Length=str(len(body)), **headers)
        self.hang_up()

    def do_cutwhole(self, argument, path):
        """Without ranges, so that there is no going on."""
        body = self.content(path)
        if self.command == 'GET':
            strike('cutwhole')
            body = body[:int(argument)]
        self.send(200, body, Content_Length=str(len(self.content(path))), ETag='"1"')
        self.hang_up()

    def do_replaced(self, argument, path):
        """By another file of its size, once a piece of the old one has been sent."""
        with lock:
            is_old = struck['replaced'] == 0
        if is_old and self.command == 'GET':
            strike('replaced')
        self.answer_file(path + ('.old' if is_old else ''), **version_headers(argument))

    def do_short(self, _, path):
        strike('short')
        body, headers = self.body_of(path)
        self.send(206, body[:-100], **headers)

    def chunked(self, body, headers):
        framed = b''.join(b'%x\r\n%s\r\n' % (len(body[i:i + 9999]), body[i:i + 9999])
                          for i in range(0, len(body), 9999))
        self.send(206, framed + b'0\r\n\r\n', Content_Length=None, Transfer_Encoding='chunked',
                  **headers)

    def do_long(self, _, path):
        strike('long')
        body, headers = self.body_of(path)
        self.chunked(body + b'more', headers)

    def do_toomuch(self, _, path):
        strike('toomuch')
        body, headers = self.body_of(path)
        self.send(206, body + b'HTTP/1.1 200 OK\r\n\r\nmore', Content_Length=str(len(body)),
                  **headers)

    def do_other(self, _, path):
        strike('other')
        body, headers = self.body_of(path)
        self.send(206, bytes([body[0] ^ 1]) + body[1:], **headers)

    def do_othermd5(self, argument, path):
        body, headers = self.body_of(path)
        headers['Content_MD5'] = base64.b64encode(hashlib.md5(body).digest()).decode()
        with lock:
            seen[self.path] += 1
            is_bad = not argument or seen[self.path] <= int(argument)
        if is_bad:
            strike('othermd5')
            body = bytes([body[0] ^ 1]) + body[1:]
        self.send(206, body, **headers)

    def do_range(self, _, path):
        strike('range')
        body, headers = self.body_of(path)
        headers['Content_Range'] = 'bytes 1-%d/%d' % (len(body), len(self.content(path)))
        self.send(206, body, **headers)

    def do_total(self, _, path):
        strike('total')
        body, headers = self.body_of(path)
        headers['Content_Range'] = headers['Content_Range'].split('/')[0] + '/99999999'
        self.send(206, body, **headers)

    def do_stall(self, _, path):
        strike('stall')
        body, headers = self.body_of(path)
        self.send(206, body[:len(body) // 2], Content_Length=str(len(body)), **headers)
        self.wfile.flush()
        time.sleep(30)
        self.hang_up()

    def do_drip(self, _, path):
        strike('drip')
        body, headers = self.body_of(path)
        self.send(206, b'', Content_Length=str(len(body)), **headers)
        for byte in body[:300]:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(0.1)
        self.hang_up()

    def do_busy(self, argument, path):
        status, _, times = argument.partition('x')
        with lock:
            seen[self.path] += 1
            is_busy = seen[self.path] <= int(times)
        if is_busy:
            strike('busy')
            return self.send(int(status), b'busy', Retry_After='0')
        return self.answer_file(path)

    def do_status(self, argument, _):
        strike('status')
        self.send(int(argument), b'no')

    def do_redirect(self, argument, path):
        strike('redirect')
        self.send(302, Location=urllib.parse.unquote(argument) + path)

    def do_loop(self, argument, path):
        strike('loop')
        self.send(302, Location='/loop=%d%s' % (int(argument) + 1, path))

    def do_changes(self, _, path):
        with lock:
            struck['changes'] += 1
            tag = '"%d"' % struck['changes']
        self.answer_file(path, ETag=tag)

    def do_nolength(self, _, path):
        strike('nolength')
        self.chunked(self.content(path), {})

    def do_nohead(self, argument, path):
        if self.command == 'HEAD':
            strike('nohead')
            return self.send(405)
        return self.answer_file(path, **version_headers(argument))

    def do_tags(self, argument, path):
        """Of the same file another tag for HEAD than for GET: none, or a weak one's."""
        strike('tags')
        tag = '"%s"' % hashlib.md5(self.content(path)).hexdigest()
        head = {'none': None, 'strong': tag, 'weak': 'W/' + tag}[argument]
        get = 'W/' + tag if argument == 'strong' else tag
        return self.answer_file(path, ETag=head if self.command == 'HEAD' else get)

    def do_encoded(self, argument, path):
        """Nothing is: the header alone is what tells."""
        strike('encoded')
        self.answer_file(path, Content_Encoding=argument)

    def do_zero(self, _, path):
        if self.command == 'HEAD':
            strike('zero')
            return self.send(200)
        return self.answer_file(path)

    def do_headers(self, *_):
        strike('headers')
        self.send_response(200)
        self.flush_headers()
        try:
            while True:
                self.wfile.write(b'X: %s\r\n' % (b'x' * 1000))
        except OSError:
            self.close_connection = True

    def do_garbage(self, *_):
        strike('garbage')
        self.wfile.write(b'220 this is no web server\r\n\r\n' * 3)
        self.hang_up()

    def do_huge(self, argument, path):
        strike('huge')
        self.send(200, b'', Content_Length=argument, Accept_Ranges='bytes')
        self.hang_up()

    def do_basic(self, argument, path):
        wanted = 'Basic ' + base64.b64encode(urllib.parse.unquote(argument).encode()).decode()
        if self.headers.get('Authorization') != wanted:
            strike('basic')
            return self.send(401, WWW_Authenticate='Basic realm="x"')
        return self.answer_file(path)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # A client that has heard enough goes.


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('folder')
    parser.add_argument('--tls', nargs=2)
    arguments = parser.parse_args()
    server = Server(('127.0.0.1', 0), Handler)
    server.folder = arguments.folder
    if arguments.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*arguments.tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    server.serve_forever()


main()
