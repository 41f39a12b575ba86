"""Reads exports of OTLP by OpenTelemetry's own classes.

otlp.py read FILE ENCODING      the spans of a file, a line of JSON each
otlp.py same PROTOBUF JSON      whether two files are the same request
otlp.py names FILE              names of attributes of a file that the conventions do not have
otlp.py points FILE ENCODING    the data points of a file of metrics, a line of JSON each, then the
                                names of attributes and metrics that the conventions do not have
otlp.py receive STATUS...       a receiver on loopback: prints its port, answers the requests
                                with these statuses in turn, then prints their spans;
                                200-5: five spans or points were rejected, 200-html: a page of a portal
"""

import http.server
import importlib
import json
import pkgutil
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service


def value(any_value):
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value(each) for each in any_value.array_value.values]
    return getattr(any_value, kind)


def parse(data, encoding):
    request = service.ExportTraceServiceRequest()
    if encoding == "json":
        tree = json.loads(data)
        # Of OTLP's JSON, only the ids differ from proto3's: hexadecimal digits, not base64.
        for resource in tree["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    for name in ("traceId", "spanId", "parentSpanId"):
                        if name not in span:
                            continue
                        raw = bytes.fromhex(span[name])
                        span[name] = __import__("base64").b64encode(raw).decode()
        json_format.ParseDict(tree, request)
    else:
        request.ParseFromString(data)
    return request


def show(request):
    for resource in request.resource_spans:
        about = {each.key: value(each.value) for each in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                row = {
                    "resource": about,
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": span.kind,
                    "start": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano,
                    "status": span.status.code,
                    "message": span.status.message,
                    "schema": [resource.schema_url, scope.schema_url],
                    "facts": {each.key: value(each.value) for each in span.attributes},
                }
                print(json.dumps(row))


def parse_metrics(data, encoding):
    request = metrics_service.ExportMetricsServiceRequest()
    if encoding == "json":
        json_format.Parse(data, request)
    else:
        request.ParseFromString(data)
    return request


def show_metrics(request):
    for resource in request.resource_metrics:
        about = {each.key: value(each.value) for each in resource.resource.attributes}
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                data = getattr(metric, kind)
                for point in data.data_points:
                    row = {
                        "resource": about,
                        "schema": [resource.schema_url, scope.schema_url],
                        "name": metric.name,
                        "unit": metric.unit,
                        "about": metric.description,
                        "kind": kind,
                        "temporality": getattr(data, "aggregation_temporality", None),
                        "monotonic": getattr(data, "is_monotonic", None),
                        "start": point.start_time_unix_nano,
                        "end": point.time_unix_nano,
                        "value": getattr(point, point.WhichOneof("value")),
                        "facts": {each.key: value(each.value) for each in point.attributes},
                    }
                    print(json.dumps(row))


def unknown_in_metrics(request):
    """Names of attributes and metrics, beside ours, that the conventions do not have."""
    attributes, metrics = conventions(), names_in("metrics")
    used, named = set(), set()
    for resource in request.resource_metrics:
        used.update(each.key for each in resource.resource.attributes)
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                named.add(metric.name)
                for point in getattr(metric, metric.WhichOneof("data")).data_points:
                    used.update(each.key for each in point.attributes)
    strange = (used - attributes) | (named - metrics)
    return sorted(name for name in strange if not name.startswith("tr."))


def answer(rest, as_json, of_metrics):
    """The body of an answer that rejects so many spans or points, or that is no answer of OTLP."""
    if rest == "html":
        return b"<html>Sign in</html>"
    if of_metrics:
        response = metrics_service.ExportMetricsServiceResponse()
        response.partial_success.rejected_data_points = int(rest)
    else:
        response = service.ExportTraceServiceResponse()
        response.partial_success.rejected_spans = int(rest)
    response.partial_success.error_message = "older than a day"
    return json_format.MessageToJson(response).encode() if as_json else response.SerializeToString()


def receive(statuses):
    statuses = list(statuses)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            data = self.rfile.read(int(self.headers["content-length"]))
            kind = self.headers["content-type"]
            code, _, rest = statuses.pop(0).partition("-")
            status = int(code)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("location", "/elsewhere")
            self.end_headers()
            of_metrics = self.path.endswith("/v1/metrics")
            encoding = "json" if kind == "application/json" else "protobuf"
            if rest:
                self.wfile.write(answer(rest, encoding == "json", of_metrics))
            if status == 200:
                about = {"path": self.path, "type": kind, "key": self.headers.get("x-key")}
                print(json.dumps(about))
                if of_metrics:
                    show_metrics(parse_metrics(data, encoding))
                else:
                    show(parse(data, encoding))

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    while statuses:
        server.handle_request()


def load(path, encoding):
    with open(path, "rb") as file:
        return parse(file.read(), encoding)


def conventions():
    """The names of all attributes of the semantic conventions, of the version that the exports name."""
    return names_in("attributes")


def names_in(part):
    names = set()
    for package in (f"opentelemetry.semconv.{part}", f"opentelemetry.semconv._incubating.{part}"):
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
            words = vars(importlib.import_module(f"{package}.{module.name}"))
            names.update(word for name, word in words.items() if name.isupper() and isinstance(word, str))
    return names


def unknown(request):
    """Names of attributes, beside ours, that the conventions do not have."""
    known = conventions()
    used = set()
    for resource in request.resource_spans:
        used.update(each.key for each in resource.resource.attributes)
        for scope in resource.scope_spans:
            for span in scope.spans:
                used.update(each.key for each in span.attributes)
    return sorted(name for name in used if not name.startswith("tr.") and name not in known)


if sys.argv[1] == "same":
    sys.exit(load(sys.argv[2], "protobuf") != load(sys.argv[3], "json"))
elif sys.argv[1] == "names":
    from opentelemetry.semconv.schemas import Schemas

    loaded = load(sys.argv[2], "protobuf")
    version = max(
        (each.value for each in Schemas), key=lambda url: [int(part) for part in url.rsplit("/", 1)[1].split(".")]
    )
    schemas = {each.schema_url for each in loaded.resource_spans}
    print(json.dumps({"unknown": unknown(loaded), "schemas": sorted(schemas), "conventions": version}))
elif sys.argv[1] == "points":
    with open(sys.argv[2], "rb") as file:
        metrics = parse_metrics(file.read(), sys.argv[3])
    show_metrics(metrics)
    print(json.dumps(unknown_in_metrics(metrics)))
elif sys.argv[1] == "read":
    with open(sys.argv[2], "rb") as file:
        show(parse(file.read(), sys.argv[3]))
else:
    receive(sys.argv[2:])
