# Asks the API of this image in its own process, without a server: an image is created, and listed.
import io, json, os, sys

from glance.common.wsgi_app import init_app

app = init_app()


def ask(method, path, want, body=None):
    raw = json.dumps(body).encode() if body else b""
    seen = {}
    answer = b"".join(app({
        "REQUEST_METHOD": method, "SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": "", "SERVER_NAME": "api", "SERVER_PORT": "9292",
        "SERVER_PROTOCOL": "HTTP/1.1", "REMOTE_ADDR": "127.0.0.1", "CONTENT_TYPE": "application/json", "CONTENT_LENGTH": str(len(raw)),
        "wsgi.version": (1, 0), "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(raw), "wsgi.errors": sys.stderr,
        "wsgi.multithread": False, "wsgi.multiprocess": False, "wsgi.run_once": True,
    }, lambda status, found, exc_info=None: seen.update(status=status)))
    if not seen["status"].startswith(str(want)):
        sys.stderr.write(f"{method} {path}: {seen['status']}: {answer[:300]}\n")
        os._exit(1)
    return answer


name = os.urandom(8).hex()
ask("POST", "/v2/images", 201, {"name": name, "disk_format": "raw", "container_format": "bare"})
if name.encode() not in ask("GET", "/v2/images", 200):
    os._exit(1)
os._exit(0)
