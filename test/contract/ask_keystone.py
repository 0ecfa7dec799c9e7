# Asks the API of this image in its own process, without a server: a token for a password, the token itself, a project.
import io, json, os, sys

from keystone.server.wsgi import initialize_public_application

app = initialize_public_application()


def ask(method, path, want, body=None, **headers):
    raw = json.dumps(body).encode() if body else b""
    seen = {}
    answer = b"".join(app({
        "REQUEST_METHOD": method, "SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": "", "SERVER_NAME": "api", "SERVER_PORT": "5000",
        "SERVER_PROTOCOL": "HTTP/1.1", "REMOTE_ADDR": "127.0.0.1", "CONTENT_TYPE": "application/json", "CONTENT_LENGTH": str(len(raw)),
        "wsgi.version": (1, 0), "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(raw), "wsgi.errors": sys.stderr,
        "wsgi.multithread": False, "wsgi.multiprocess": False, "wsgi.run_once": True, **headers,
    }, lambda status, found, exc_info=None: seen.update(status=status, headers=dict(found))))
    if not seen["status"].startswith(str(want)):
        sys.stderr.write(f"{method} {path}: {seen['status']}: {answer[:300]}\n")
        os._exit(1)
    return seen["headers"]


domain = {"id": "default"}
user = {"name": "admin", "domain": domain, "password": os.environ["OS_BOOTSTRAP_PASSWORD"]}
token = ask("POST", "/v3/auth/tokens", 201, {"auth": {
    "identity": {"methods": ["password"], "password": {"user": user}}, "scope": {"project": {"name": "admin", "domain": domain}},
}})["X-Subject-Token"]
ask("GET", "/v3/auth/tokens", 200, HTTP_X_AUTH_TOKEN=token, HTTP_X_SUBJECT_TOKEN=token)
ask("POST", "/v3/projects", 201, {"project": {"name": os.urandom(8).hex()}}, HTTP_X_AUTH_TOKEN=token)
os._exit(0)
