#!/usr/bin/env python3
"""The program `basin serve` as its users see it: every route and error, the journal after kill -9, a torn
tail, a full disk, reloads under load, limits, tokens, two servers on one journal.

    serve.py BASIN [fuzz BODIES]     exits with 77, which CTest calls skipped, where libmicrohttpd is absent
"""

import concurrent.futures
import ctypes
import hashlib
import http.client
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib

BASIN = [os.path.abspath(w) if os.path.exists(w) else w for w in sys.argv[1].split()]
ALL = 300


class Server:
    def __init__(self, *options, limit=0, base="base.basin", model="model.safetensors"):
        words = [*BASIN, "serve", model, base, *options]
        if not {"--listen", "--socket"} & set(options):
            words += ["--listen", "127.0.0.1:0"]
        self.err = open("err.txt", "w+")
        before = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None
        self.process = subprocess.Popen(words, stdout=open("log.jsonl", "a"), stderr=self.err, preexec_fn=before)
        end = time.time() + 120
        while "serving on" not in self.said() and self.process.poll() is None and time.time() < end:
            time.sleep(0.02)
        self.where = self.said().partition("serving on http://")[2].split(": ")[0]

    def said(self):
        with open("err.txt") as f:
            return f.read()

    def connect(self):
        host, port = self.where.rsplit(":", 1)
        return http.client.HTTPConnection(host.strip("[]"), int(port), timeout=60)

    def ask(self, method, path, body=None, connection=None, **headers):
        c = connection or self.connect()
        text = json.dumps(body) if isinstance(body, (dict, list)) else body
        if text is not None:
            headers = {"Content-Type": "application/json", **headers}
        c.request(method, path, text, {k.replace("_", "-"): v for k, v in headers.items()})
        r = c.getresponse()
        content = r.read()
        self.headers = r.headers
        if not connection:
            c.close()
        if r.headers["Content-Type"] == "application/json" and method != "HEAD":
            answer = json.loads(content, parse_constant=lambda name: sys.exit(f"{name} in JSON"))
            assert "model" in answer and "journal" in answer or r.status == 408, answer
            return r.status, answer
        return r.status, content.decode()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code = self.process.wait(60)
        assert code == (0 if number == signal.SIGTERM else -number), (code, self.said())


def run(*words, fails=None):
    p = subprocess.run([*BASIN, *words], capture_output=True, text=True)
    if fails:
        assert p.returncode in (1, 2) and fails in p.stderr, p
    else:
        assert p.returncode == 0, p
    return p


def refused(words, line):
    p = subprocess.run([*BASIN, "serve", *words], capture_output=True, text=True, timeout=120)
    assert p.returncode == 1 and line in p.stderr and p.stderr.count("\n") == 1, p


def make_data():
    draw = random.Random(1)
    bad = [draw.random() < 0.2 for _ in range(ALL)]
    with open("accounts.csv", "w") as f:
        f.write("account,balance,country,is_fraud\n")
        for i in range(ALL):
            f.write(f"A{i},{draw.gauss(300 if bad[i] else 100, 40):.2f},{draw.choice(['DE', 'FR'])},{int(bad[i])}\n")
        f.write('"ü ""x"", \u2603",5,DE,0\n')
    with open("transfers.csv", "w") as f:
        f.write("source,target,amount,time\n")
        for _ in range(4 * ALL):
            f.write(f"A{draw.randrange(ALL)},A{draw.randrange(ALL)},{draw.expovariate(0.01):.2f},2024-10-{draw.randrange(1, 28):02d}\n")
    run("data", "convert", "accounts.csv", "transfers.csv", "base.basin", "--label", "is_fraud")
    for name, seed in (("model", 1), ("other", 2)):
        run("anomaly", "train", "base.basin", "--trees", "0", "--epochs", "3", "--members", "1", "--seed", str(seed), "-o", f"{name}.safetensors", "-q")


def last_answer(s, text):
    """The status and JSON of the last answer to bytes, after which the server closes or is left."""
    with socket.create_connection(tuple(s.where.rsplit(":", 1)), timeout=30) as c:
        c.sendall(text)
        got = b""
        while piece := c.recv(65536):
            got += piece
    *_, last = re.finditer(rb"HTTP/1.1 \d", got)
    head, _, body = got[last.start() :].partition(b"\r\n\r\n")
    assert b"application/json" in head, got
    return int(head.split()[1]), json.loads(body)


def edge(a, b, amount=5, time="2024-10-20"):
    return {"source": a, "target": b, "amount": amount, "time": time}


def test_routes(s):
    model = s.ask("GET", "/health")[1]["model"]
    assert model == subprocess.run(["sha256sum", "model.safetensors"], capture_output=True, text=True).stdout[:16]
    scores = json.loads(run("anomaly", "score", "model.safetensors", "base.basin", "--json", "-q").stdout)["nodes"]
    for row in scores[:5] + scores[-1:]:
        status, a = s.ask("POST", "/score", {"id": row["node"]})
        got = a["results"][0]
        assert status == 200 and got["id"] == row["node"] and got["anomalous"] == row["anomalous"], (row, a)
        assert abs(got["probability"] - row["probability"]) < 1e-6, (row, got)
    status, a = s.ask("POST", "/score", {"ids": ["A1", "no", "A2", "no"]})
    assert status == 200 and a["unknown"] == 2 and a["results"][3]["id"] == "no" and "error" in a["results"][1] and "probability" in a["results"][2]
    assert s.ask("GET", "/score?id=%FF")[1]["results"][0]["id"] == "\ufffd"
    assert s.ask("HEAD", "/health")[0] == 200
    status, a = s.ask("GET", "/explain?id=A3&reasons=2")
    assert status == 200 and len(a["results"][0]["features"]) == 2, a
    text = s.ask("GET", "/metrics")[1]
    assert 'basin_requests_total{route="/score",status="200"}' in text and f'basin_model_info{{model="{model}"}} 1' in text
    assert s.ask("GET", "/nowhere")[1]["request"] == s.headers["X-Request-Id"]
    # Drift of what was scored, and how scores are distributed.
    few = s.ask("GET", "/metrics")[1]
    assert "basin_drift{" not in few and "basin_drift_nodes 0" not in few, few
    bad = json.loads(run("anomaly", "score", "model.safetensors", "base.basin", "--json", "-q").stdout)["nodes"]
    s.ask("POST", "/score", {"ids": [r["node"] for r in bad]})
    text = s.ask("GET", "/metrics")[1]
    drift = {m[1]: float(m[2]) for m in re.finditer(r'basin_drift{column="([^"]*)"} (\S+)', text)}
    assert {"balance", "country", "number of neighbours"} <= drift.keys() and max(drift.values()) < 0.25, drift
    for _ in range(20):
        s.ask("POST", "/score", {"ids": [r["node"] for r in bad if r["anomalous"]]})
    again = {m[1]: float(m[2]) for m in re.finditer(r'basin_drift{column="([^"]*)"} (\S+)', s.ask("GET", "/metrics")[1])}
    assert again["balance"] > 0.25 > again["country"], again
    counted = int(re.search(r"basin_score_count{} (\d+)", text)[1])
    below = int(re.search(r'basin_score_bucket{le="0.5"} (\d+)', text)[1])
    assert f"basin_nodes_scored_total {counted}\n" in text and 0 < below < counted, text


def test_errors(s):
    add = {"accounts": [{"id": "E1", "balance": 1, "country": "DE"}]}
    for expected, method, path, body, line in [
        (404, "GET", "/nowhere", None, "no such path"),
        (404, "GET", "/score?id=no", None, None),
        (405, "DELETE", "/score", None, "takes GET, POST"),
        (405, "GET", "/add", None, "takes POST"),
        (400, "GET", "/score", None, "needs an id"),
        (400, "GET", "/score?id=A%00B", None, "zero byte"),
        (400, "GET", "/score?node=A1", None, "key 'node'"),
        (400, "GET", "/score?id=A1&id=A2", None, "there twice"),
        (400, "GET", "/score?id", None, "an id is not a string"),
        (400, "POST", "/score?id=A1", {"id": "A1"}, "expected it in the body"),
        (404, "GET", "/score%00?id=A1", None, "no such path"),
        (400, "POST", "/score", "", "empty"),
        (400, "POST", "/score", "{", "not JSON"),
        (400, "POST", "/score", "[]", "not a JSON object"),
        (400, "POST", "/score", '{"id": "a\\u0000b"}', "NUL"),
        (400, "POST", "/score", {"id": 7}, "not a string"),
        (400, "POST", "/score", {"ids": "A1"}, "an array"),
        (400, "POST", "/score", {"id": "A1", "ids": []}, "needs"),
        (400, "POST", "/score", '{"id":"A1","id":"A2"}', "key 'id'"),
        (400, "POST", "/explain", {"id": "A1", "reasons": 0}, "1 to 1000"),
        (413, "POST", "/score", {"ids": ["A1"] * 1001}, "at most 1000"),
        (413, "POST", "/score", {"id": "x" * 2**20}, "longer than 1048576"),
        (400, "POST", "/add", {}, "nothing to add"),
        (400, "POST", "/add", {"account": []}, "key 'account'"),
        (400, "POST", "/add", {"accounts": [7]}, "accounts[0] is not an object"),
        (400, "POST", "/add", {"accounts": [{"balance": 1}]}, "'account' is absent"),
        (400, "POST", "/add", {"accounts": [{"id": "E1", "balance": [1]}]}, "'balance' is a list"),
        (422, "POST", "/add", {"accounts": [{"id": "E1", "balance": "much", "country": "DE"}]}, "'balance'"),
        (422, "POST", "/add", '{"accounts":[{"id":"E1","balance":1e999}]}', "'balance' is too large"),
        (422, "POST", "/add", {"accounts": [{"id": "E1", "country": 2**60}]}, "'country' has more digits"),
        (400, "POST", "/add", {"accounts": [{"id": 127, "balance": 1}]}, "'id' is an id, expected a string"),
        (400, "POST", "/add", {"edges": [edge("A1", 2)]}, "'target' is an id, expected a string"),
        (422, "POST", "/add", {"accounts": [{"id": "E1", "balance": "3e38", "country": "DE"}]}, "'balance' is too large"),
        (422, "POST", "/add", {"accounts": [{"id": "E1", "balance": "1.234", "country": "DE"}]}, "1.234 or 1234"),
        (422, "POST", "/add", {"accounts": [{"id": "E1", "balance": True, "country": "DE"}]}, "'balance' holds 'true"),
        (422, "POST", "/add", {"accounts": [{"id": "E1", "balance": 1, "country": "XX"}]}, "'country' holds 'XX'"),
        (422, "POST", "/add", {"accounts": [{"id": "E1", "balance": 1, "is_fraud": 2}]}, "'is_fraud' holds '2', expected 0 or 1"),
        (422, "POST", "/add", {"edges": [edge("A1", "A2", time="9999-12-31")]}, "'time' is '9999-12-31'"),
        (422, "POST", "/add", {"edges": [edge("A1", "A2", time="soon")]}, "'time' holds 'soon'"),
        (400, "POST", "/add", '{"accounts":[{"id":"E1","id":"E2"}]}', "there twice"),
        (400, "POST", "/add", {"accounts": [{"id": "E1", "colour": 1, "balance": 1, "country": "DE"}]}, "'colour'"),
        (422, "POST", "/add", {**add, "edges": [edge("E1", "no")]}, "'no'"),
        (400, "POST", "/add", {"edges": [{"source": "A1"}]}, "'target' is absent"),
        (413, "POST", "/add", {"edges": [edge("A1", "A2")] * 1001}, "1001 rows"),
    ]:
        status, a = s.ask(method, path, body)
        assert status == expected and (line is None or line in a["error"] and a["status"] == status), (path, body, status, a)
    assert s.ask("DELETE", "/score")[0] == 405 and s.headers["Allow"] == "GET, POST"
    assert s.ask("POST", "/score", '{"id":"A1"}', Content_Type="text/plain")[0] == 415
    assert s.ask("GET", "/health")[1]["journal"] == 0 and s.ask("GET", "/score?id=E1")[0] == 404
    health = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
    cases = [
        (408, b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"),
        (408, b"GET /hea"),
        (408, health),
        (408, health + b"\r\n" + health),
        (400, b"nonsense\r\n\r\n"),
        (400, b"GET /health HTTP/1.1\r\n\r\n"),
        (400, b"GET /health HTTP\r\n\r\n"),
        (505, b"GET /health HTTP/3.0\r\nHost: localhost\r\n\r\n"),
        (400, health + b"\r\n" + b"\x16\x03\x01 secret\r\n\r\n"),
        (400, b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n"),
        (413, b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n"),
        (400, b"POST /score HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        (414, b"GET /" + b"x" * 40000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        (431, health + b"X: " + b"y" * 40000 + b"\r\n\r\n"),
        (403, b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
        (200, b"GET /health HTTP/1.1\r\nHost: [::1]:80\r\nOrigin: http://127.0.0.1:3000\r\n\r\n"),
        (200, b"GET /health HTTP/1.0\r\n\r\n"),
    ]
    with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
        answers = list(pool.map(lambda case: last_answer(s, case[1]), cases))
    for (expected, text), (status, a) in zip(cases, answers):
        assert status == expected == a.get("status", 200), (text[:60], status, a)
    for origin in ("http://evil.example", "null", "https://localhost.evil.example"):
        assert s.ask("POST", "/reload", Origin=origin)[0] == 403 and s.ask("GET", "/health", Origin=origin)[0] == 403
    assert "basin_reloads_total 0\n" in s.ask("GET", "/metrics")[1]
    chunks = (b"x" * 65536 for _ in range(20))
    assert s.ask("POST", "/score", chunks)[0] == 413


def test_additions(s):
    status, a = s.ask("POST", "/add", {"accounts": [{"id": 'n "1",\n', "balance": 400, "country": None}], "edges": [edge('n "1",\n', "A1")]})
    assert status == 400 or (status == 200 and a == {"model": a["model"], "journal": 1, "accounts": 1, "updated": 0, "edges": 1}), a
    done = a["journal"]
    status, a = s.ask("POST", "/add", {"accounts": [{"account": "N1", "balance": "400", "country": "FR"}], "edges": [edge("N1", "A1"), edge("A2", "N1")]})
    assert status == 200 and a["journal"] == done + 1 and a["accounts"] == 1 and a["edges"] == 2, a
    before = s.ask("GET", "/score?id=N1")[1]["results"][0]["probability"]
    status, a = s.ask("POST", "/add", {"accounts": [{"id": "N1", "balance": 20}]})
    assert status == 200 and a["updated"] == 1 and a["accounts"] == 0, a
    assert s.ask("GET", "/score?id=N1")[1]["results"][0]["probability"] != before
    why = s.ask("GET", "/explain?id=N1&reasons=50")[1]["results"][0]
    assert {n["id"] for n in why["neighbours"]} == {"A1", "A2"} and "balance" in [f["feature"] for f in why["features"]], why
    return a["journal"]


def fill(s, answered, name):
    try:
        for i in range(100000):
            if s.ask("POST", "/add", {"edges": [edge(f"A{i % ALL}", f"A{(i * 7 + 1) % ALL}")]})[0] == 200:
                answered.append(name)
    except (OSError, http.client.HTTPException, ValueError):
        pass


def test_kill():
    s = Server()
    first, answered = s.ask("GET", "/health")[1]["journal"], []
    threads = [threading.Thread(target=fill, args=(s, answered, k)) for k in range(4)]
    for t in threads:
        t.start()
    time.sleep(1)
    s.stop(signal.SIGKILL)
    for t in threads:
        t.join()
    with open("base.basin.journal", "ab") as f:
        f.write(b'0badc0de {"edges":[{"so')
    s = Server()
    records, text = s.ask("GET", "/health")[1]["journal"], s.ask("GET", "/metrics")[1]
    assert len(answered) > 3 and first + len(answered) <= records <= first + len(answered) + 4, (first, len(answered), records)
    assert "dropped 23 bytes" in s.said() and f"basin_journal_records {records}" in text
    scores = s.ask("POST", "/score", {"ids": ["A1", "N1", "A2"]})[1]["results"]
    refused(["model.safetensors", "base.basin", "--listen", "127.0.0.1:0"], "another process")
    run("data", "convert", "base.basin", "base.basin.journal", "new.basin", fails="another process")
    s.stop()
    run("data", "convert", "base.basin", "base.basin.journal", "new.basin")
    rows = json.loads(run("anomaly", "score", "model.safetensors", "new.basin", "--json", "-q").stdout)["nodes"]
    for score in scores:
        folded = next(r for r in rows if r["node"] == score["id"])
        assert abs(folded["probability"] - score["probability"]) < 1e-6, (folded, score)
    refused(["model.safetensors", "new.basin", "--journal", "base.basin.journal", "--listen", "127.0.0.1:0"], "journal of a base with digest")
    run("data", "convert", "base.basin.journal", "x.basin", fails="needs its base in front")
    with open("base.basin.journal") as f:
        lines = f.readlines()
    with open("empty.journal", "w") as f:
        f.write(lines[0])
    run("data", "convert", "base.basin", "empty.journal", "same.basin")
    with open("bad.journal", "w") as f:
        f.writelines([lines[0], lines[1].replace("A", "B", 1), *lines[2:]])
    refused(["model.safetensors", "base.basin", "--journal", "bad.journal", "--listen", "127.0.0.1:0"], "record 1, at byte")
    assert listed("bad.journal")[0]["kind"] == "damaged"
    run("data", "journal", "undo", "bad.journal", "1")
    s = Server("--journal", "bad.journal")
    assert s.ask("GET", "/health")[1]["journal"] == len(lines) - 2, s.said()
    s.stop()
    refused(["model.safetensors", "base.basin", "--journal", "accounts.csv", "--listen", "127.0.0.1:0"], "not a journal")
    s = Server("--read-only")
    assert s.ask("GET", "/health")[1]["journal"] == records and s.ask("POST", "/add", {"edges": [edge("A1", "A2")]})[0] == 403
    s.stop()


def test_failed_start():
    """A server that does not start leaves no journal but one that was there, or that another one has."""
    words = ["base.basin", "--journal", "start.journal", "--listen", "127.0.0.1:0"]
    refused(["accounts.csv", *words], "accounts.csv")
    assert not os.path.exists("start.journal")
    s = Server(*words[1:])
    refused(["model.safetensors", *words], "another process")
    assert s.ask("POST", "/add", {"edges": [edge("A1", "A2")]})[1]["journal"] == 1
    s.stop()
    os.remove("start.journal")
    Server(*words[1:]).stop()
    size = os.path.getsize("start.journal")
    refused(["accounts.csv", *words], "accounts.csv")
    assert os.path.getsize("start.journal") == size


def write(name, *rows):
    with open(name, "w") as f:
        f.write("\n".join(rows) + "\n")


def listed(name):
    return json.loads(run("data", "journal", "list", name, "--json").stdout)["records"]


def value_of(s, account, feature):
    found = s.ask("GET", f"/explain?id={account}&reasons=1000")[1]["results"][0]["features"]
    return next(f["value"] for f in found if f["feature"] == feature)


def comma_tables(mark, delimiter):
    """The accounts and transfers of base.basin, written with another decimal mark."""
    for name in ("accounts", "transfers"):
        with open(f"{name}.csv") as f:
            rows = [line.rstrip("\n").split(",") for line in f if '"' not in line]
        write(f"{name}-{mark}.csv", *(delimiter.join([r[0], *(x.replace(".", mark) for x in r[1:])]) for r in rows))
    return f"accounts-{mark}.csv", f"transfers-{mark}.csv"


def test_numbers():
    """A JSON number is that number, whatever decimal mark the tables of base and model have."""
    run("data", "convert", *comma_tables(",", ";"), "comma.basin", "--label", "is_fraud")
    run("anomaly", "train", "comma.basin", "--trees", "0", "--epochs", "2", "--members", "1", "-o", "comma.safetensors", "-q")
    for base, model in (("base.basin", "comma.safetensors"), ("comma.basin", "model.safetensors"), ("comma.basin", "comma.safetensors")):
        s = Server("--journal", "number.journal", base=base, model=model)
        for i, (given, expected) in enumerate([(1.234, 1.234), (1362.61, 1362.61), (1234, 1234), ("2.127,34", 2127.34), ("2,127.34", 2127.34)]):
            status, a = s.ask("POST", "/add", {"accounts": [{"id": f"V{i}", "balance": given, "country": "DE"}], "edges": [edge(f"V{i}", "A1", 7.125)]})
            assert status == 200, (base, model, given, a)
            assert abs(value_of(s, f"V{i}", "balance") - expected) < 1e-3, (base, model, given)
        s.stop()
        s = Server("--journal", "number.journal", base=base, model="model.safetensors")
        assert abs(value_of(s, "V0", "balance") - 1.234) < 1e-6 and abs(value_of(s, "V3", "balance") - 2127.34) < 1e-3
        s.stop()
        run("data", "convert", base, "number.journal", "folded.basin")
        os.remove("number.journal")
    # A journal of format 1, whose numbers and texts have the meaning that they had.
    with open("comma.basin", "rb") as f:
        head = {"basin_journal": 1, "base": hashlib.sha256(f.read()).hexdigest()}
    records = [head, {"accounts": [{"id": "c", "balance": 3.25, "country": "DE"}, {"id": 7, "balance": "1.234", "country": "DE"}]}]
    lines = [json.dumps(r, separators=(",", ":")) for r in records]
    with open("old.journal", "w") as f:
        f.writelines(f"{zlib.crc32(line.encode()):08x} {line}\n" for line in lines)
    s = Server("--journal", "old.journal", base="comma.basin")
    assert value_of(s, "c", "balance") == 3.25 and value_of(s, "7", "balance") == 1234
    assert s.ask("POST", "/add", {"edges": [edge("c", "7", 1.5)]})[1]["journal"] == 2
    s.stop()
    assert [r["kind"] for r in listed("old.journal")] == ["addition"] * 2


def test_refused_by_a_model():
    """What one model took stays in the journal, though another one cannot use it."""
    run("anomaly", "train", "accounts.csv", "transfers.csv", "--label", "is_fraud", "--missing", "mean", "--trees", "0", "--epochs", "2", "--members", "1", "-o", "mean.safetensors", "-q")
    s = Server("--journal", "gap.journal", model="mean.safetensors")
    for i in range(3):
        assert s.ask("POST", "/add", {"accounts": [{"id": f"G{i}", "country": "DE"} if i != 1 else {"id": "G1", "balance": 5, "country": "DE"}]})[0] == 200
    s.stop()
    size = os.path.getsize("gap.journal")
    s = Server("--journal", "gap.journal")
    assert s.said().count("cannot be used by this model") == 2 and "2 of 3 additions are left out" in s.said(), s.said()
    assert s.ask("GET", "/score?id=G1")[0] == 200 and s.ask("GET", "/score?id=G2")[0] == 404
    assert "basin_journal_refused 2" in s.ask("GET", "/metrics")[1]
    s.stop()
    assert os.path.getsize("gap.journal") == size
    run("data", "journal", "undo", "gap.journal", "3")
    run("data", "journal", "undo", "gap.journal", "3", fails="taken back before")
    run("data", "journal", "undo", "gap.journal", "9", fails="no record 9")
    s = Server("--journal", "gap.journal", model="mean.safetensors")
    assert s.ask("GET", "/score?id=G0")[0] == 200 and s.ask("GET", "/score?id=G2")[0] == 404 and s.ask("GET", "/health")[1]["journal"] == 2
    s.stop()
    run("data", "journal", "undo", "gap.journal", "4")
    s = Server("--journal", "gap.journal", model="mean.safetensors")
    assert s.ask("GET", "/score?id=G2")[0] == 200 and [r["undone"] for r in listed("gap.journal")] == [False, False, False, True, False]
    s.stop()


def test_damage():
    """A line feed is not what holds records together; a torn head is begun anew."""
    s = Server("--journal", "d.journal")
    for i in range(5):
        assert s.ask("POST", "/add", {"accounts": [{"id": f"D{i}", "balance": i, "country": "DE"}]})[0] == 200
    s.stop()
    with open("d.journal", "rb") as f:
        whole = f.read()
    feeds = [i for i, byte in enumerate(whole) if byte == 10]
    for change, expected in [(lambda t: [t.__setitem__(i, 88) for i in feeds], 5), (lambda t: t.pop(), 5), (lambda t: t.__delitem__(slice(feeds[3] + 5, None)), 3), (lambda t: t.__delitem__(slice(40, None)), 0), (lambda t: t.__delitem__(slice(feeds[0], None)), 0)]:
        text = bytearray(whole)
        change(text)
        with open("d.journal", "wb") as f:
            f.write(text)
        s = Server("--journal", "d.journal")
        assert s.process.poll() is None and s.ask("GET", "/health")[1]["journal"] == expected, (expected, s.said())
        assert s.ask("POST", "/add", {"accounts": [{"id": "Z", "balance": 1, "country": "DE"}]})[1]["journal"] == expected + 1
        s.stop()
        s = Server("--journal", "d.journal")
        assert s.ask("GET", "/score?id=Z")[0] == 200, s.said()
        s.stop()
    for at in (feeds[2] + 3, feeds[2] + 12, feeds[2] + 30):  # length, checksum and text of a record, of the last one too
        for last in (feeds[3] + 1, len(whole)):
            text = bytearray(whole)
            text[at] ^= 1
            with open("d.journal", "wb") as f:
                f.write(text[:last])
            size = os.path.getsize("d.journal")
            refused(["model.safetensors", "base.basin", "--journal", "d.journal", "--listen", "127.0.0.1:0"], "record 3, at byte")
            assert os.path.getsize("d.journal") == size
    s = Server("--journal", "watched.journal")
    one = {"edges": [edge("A1", "A2")]}
    assert s.ask("POST", "/add", one)[0] == 200
    os.rename("watched.journal", "elsewhere.journal")
    before = s.ask("GET", "/score?id=A1")[1]
    assert s.ask("POST", "/add", one)[0] == 503 and s.ask("GET", "/score?id=A1")[1] == before
    os.rename("elsewhere.journal", "watched.journal")
    assert s.ask("POST", "/add", one)[1]["journal"] == 2
    os.remove("watched.journal")
    assert s.ask("POST", "/add", one)[0] == 503
    s.stop(signal.SIGKILL)


def test_door():
    s = Server("--journal", "door.journal", "--allow-future", "--allow-unknown")
    assert s.ask("POST", "/add", {"accounts": [{"id": "F1", "balance": 1, "country": "XX"}], "edges": [edge("A1", "F1", time="9999-12-31")]})[0] == 200
    s.stop()
    assert Server("--journal", "door.journal").stop() is None
    s = Server("--journal", "door2.journal")
    soon = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 80000))
    later = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 90000))
    assert s.ask("POST", "/add", {"edges": [edge("A1", "A2", time=soon)]})[0] == 200
    assert s.ask("POST", "/add", {"edges": [edge("A1", "A2", time=later)]})[0] == 422
    s.stop()


def test_full_disk():
    s = Server("--journal", "full.journal", limit=600)
    codes = [s.ask("POST", "/add", {"edges": [edge("A1", "A2")]})[0] for _ in range(12)]
    good = codes.count(200)
    assert 0 < good < 12 and codes == [200] * good + [503] * (12 - good), codes
    assert s.ask("GET", "/score?id=A1")[0] == 200 and s.ask("GET", "/health")[1]["journal"] == good
    s.stop()
    s = Server("--journal", "full.journal")
    assert s.ask("GET", "/health")[1]["journal"] == good and "dropped" not in s.said()
    s.stop()


def load(s, seen, stop, bad):
    c = s.connect()
    while not stop.is_set():
        status, a = s.ask("GET", "/score?id=A5", connection=c)
        seen.add(a["model"])
        if status != 200:
            bad.append(a)


def test_reload():
    os.system("cp model.safetensors live.safetensors")
    s = Server("--journal", "reload.journal", "--log", "own.jsonl", model="live.safetensors")
    s.ask("POST", "/add", {"edges": [edge("A5", "A6", 9999)]})
    seen, bad, stop = set(), [], threading.Event()
    threads = [threading.Thread(target=load, args=(s, seen, stop, bad)) for _ in range(3)]
    for t in threads:
        t.start()
    for name in ("other", "model", "other"):
        os.system(f"cp {name}.safetensors aside && mv aside live.safetensors")
        status, a = s.ask("POST", "/reload")
        assert status == 200 and a["reloaded"] and a["journal"] == 1, a
    s.process.send_signal(signal.SIGHUP)
    os.system("cp accounts.csv aside && mv aside live.safetensors")
    time.sleep(0.3)
    status, a = s.ask("POST", "/reload")
    assert status == 503 and "live.safetensors" in a["error"], a
    assert s.ask("GET", "/score?id=A5")[0] == 200
    os.system("cp model.safetensors live.safetensors; touch base.basin")
    assert "has changed since" in s.ask("POST", "/reload")[1]["error"]
    threading.Timer(0.2, stop.set).start()
    for t in threads:
        t.join()
    s.stop()
    assert not bad and len(seen) == 2, (bad[:2], seen)
    lines = [json.loads(x) for x in open("own.jsonl")]
    assert {x["status"] for x in lines} == {200, 503} and all("A5" not in json.dumps(x) for x in lines)


def test_access():
    with open("token", "w") as f:
        f.write("correct-horse-battery\n")
    refused(["model.safetensors", "base.basin", "--listen", "0.0.0.0:0"], "needs a token")
    os.chmod("token", 0o644)
    refused(["model.safetensors", "base.basin", "--token", "token"], "mode 0644")
    os.chmod("token", 0o600)
    s = Server("--listen", "0.0.0.0:0", "--token", "token", "--connections", "8", "--read-only")
    for words, expected in (({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Authorization": "Bearer correct-horse-battery"}, 200)):
        assert s.ask("GET", "/score?id=A1", **words)[0] == expected
    assert s.ask("GET", "/health")[0] == 200
    held, token = [s.connect() for _ in range(12)], {"Authorization": "Bearer correct-horse-battery"}
    assert [s.ask("GET", "/score?id=A1", connection=c, **token)[0] for c in held] == [200] * 12  # those that wait count for nothing
    for c in held:
        c.close()
    begun = []

    def is_crowded():
        """With one more request that has begun; on a busy machine one whose head is late may be closed meanwhile."""
        begun.append(s.connect())
        begun[-1].putrequest("POST", "/score")
        for name, value in {**token, "Content-Type": "application/json", "Content-Length": "9"}.items():
            begun[-1].putheader(name, value)
        begun[-1].endheaders()  # and no body
        return s.ask("GET", "/score?id=A1", **token)[0] == 503

    assert any(is_crowded() for _ in range(30)), s.ask("GET", "/metrics", **token)[1]
    assert len(begun) >= 4 and s.ask("GET", "/health")[0] == 200, len(begun)  # one answered may count until its thread ends it
    for c in begun:
        c.close()
    s.stop()
    s = Server("--socket", "s.sock", "--read-only")
    assert os.stat("s.sock").st_mode & 0o777 == 0o600
    with socket.socket(socket.AF_UNIX) as c:
        c.connect("s.sock")
        c.sendall(b"GET /health HTTP/1.1\r\nHost: proxy\r\nConnection: close\r\n\r\n")
        assert b"200 OK" in c.recv(1000)
    refused(["model.safetensors", "base.basin", "--socket", "s.sock", "--read-only"], "another server listens")
    s.stop()
    assert not os.path.exists("s.sock")
    refused(["none.safetensors", "base.basin"], "none.safetensors")
    refused(["model.safetensors", "base.basin", "--listen", "127.0.0.1:99999"], "HOST:PORT")


def test_json():
    """Where it listens, as one line of standard output; nothing of it on standard error."""
    for words in (["--listen", "127.0.0.1:0"], ["--socket", "json.sock"]):
        p = subprocess.Popen([*BASIN, "serve", "model.safetensors", "base.basin", "--read-only", "--json", "--log", "json.log", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        start = json.loads(p.stdout.readline())
        family, where = (socket.AF_INET, (start["address"], start["port"])) if "port" in start else (socket.AF_UNIX, start["socket"])
        with socket.socket(family) as c:
            c.connect(where)
            c.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            health = json.loads(c.makefile().read().partition("\n\n")[2])
        assert {k: start[k] for k in ("model", "accounts", "edges", "journal", "read_only")}.items() <= health.items(), (start, health)
        p.send_signal(signal.SIGTERM)
        out, err = p.communicate(timeout=60)
        assert p.returncode == 0 and out == "" and err == "basin: stopping\n", (out, err)


def test_slow_clients():
    """Clients that send a byte now and then neither keep others out nor stay."""
    s = Server("--connections", "100", "--timeout", "3", "--read-only", "--host", "scores.example,other.example")
    assert s.ask("GET", "/health", Host="scores.example")[0] == 200 and s.ask("GET", "/health", Origin="https://other.example:8443")[0] == 200
    address, slow, begun = tuple(s.where.rsplit(":", 1)), [], time.time()
    for _ in range(200):
        slow.append(socket.create_connection(address, timeout=30))
        slow[-1].sendall(b"GET /sco")
    times, codes = [], []
    while time.time() < begun + 5:
        for c in slow:
            try:
                c.send(b"r")
            except OSError:
                pass
        at = time.time()
        codes += [s.ask("GET", "/health")[0]]
        times.append(time.time() - at)
        codes += [s.ask("GET", "/score?id=A1")[0]]
        time.sleep(0.3)
    assert set(codes) == {200} and max(times) < 1, (codes, times)
    for c in slow:
        c.settimeout(5)
        try:
            answer = c.recv(1000)
        except ConnectionError:
            answer = b""
        assert not answer or b" 408 " in answer or b" 503 " in answer, answer
        c.close()
    s.stop()


def test_labels():
    """--in-context: a label is known by the next score, and after kill -9; a refused one changes nothing."""
    with open("labels.csv", "w") as f, open("pairs.csv", "w") as g:
        f.write("account,label,amount,age\n")
        g.write("source,target\n")
        for i in range(60):
            f.write(f"L{i},{int(i % 5 == 0) if i < 30 else ''},{(i * 7) % 13 + 20 * (i % 5 == 0)},{i % 11}\n")
            g.write(f"L{i},L{(i * 17 + 3) % 60}\n")
    options = ("--in-context", "--threads", "1")
    s = Server(*options, model="labels.csv", base="pairs.csv")

    def score():
        return s.ask("POST", "/score", {"ids": [f"L{i}" for i in range(60)]})[1]["results"]

    def label(body):
        return s.ask("POST", "/label", body)

    first = score()
    assert label({"id": "L35", "label": 1}) == (200, {"model": "in-context", "journal": 1, "labels": 1})
    second = score()
    assert second != first
    for body, status in (({"id": "X", "label": 1}, 422), ({"id": "L1", "label": 2}, 400), ({"id": "L1"}, 400), ({"labels": []}, 400),
                         ({"labels": [{"id": f"L{i}", "label": 0} for i in range(60)]}, 422),
                         ({"labels": [{"id": "L40", "label": 1}, {"id": "X", "label": 1}]}, 422)):  # fmt: skip
        assert label(body)[0] == status, (body, label(body))
    assert score() == second
    assert label({"labels": [{"id": "L36", "label": 0}, {"id": "L35", "label": 0}]})[1]["labels"] == 2
    third = score()
    why = s.ask("GET", "/explain?id=L40&reasons=3")[1]["results"][0]
    assert len(why["sources"]) == 3 and why["sources"][0]["agrees"][0]["column"] and why["probability"] == third[40]["probability"]
    assert s.ask("POST", "/add", {"accounts": [{"id": "N"}]})[0] == 400 and s.ask("POST", "/add", {"edges": [{"source": "L1", "target": "L2"}]})[0] == 400
    assert s.ask("POST", "/add", {"accounts": [{"account": "L36", "label": 0}]})[1]["updated"] == 1 and score() == third
    assert "basin_threshold 0.5" in s.ask("GET", "/metrics")[1]
    s.stop(signal.SIGKILL)
    s = Server(*options, model="labels.csv", base="pairs.csv")
    assert s.ask("GET", "/health")[1]["journal"] == 3 and score() == third
    s.stop()
    for record in ("2", "3"):
        run("data", "journal", "undo", "labels.csv.journal", record)
    s = Server(*options, model="labels.csv", base="pairs.csv")
    assert score() == second
    assert s.ask("POST", "/reload")[0] == 200 and score() == second
    s.stop()


def mutate(draw, body):
    pieces = [b'"', b"{", b"[", b"}", b"\\u0000", b"\\ud800", b"1e400", b"null", b",", b"-", b"\xff", b'"id":' * 3, b"", b""]
    for _ in range(draw.randrange(1, 6)):
        i = draw.randrange(len(body) + 1)
        j = i + draw.randrange(12)
        piece = draw.choice([*pieces, body[i:j], draw.randbytes(2)])
        body = body[:i] + piece + body[draw.choice([i, j]) :]
    return body


def fuzz(bodies):
    draw = random.Random(7)
    seeds = [{"id": "A1"}, {"ids": ["A1", "A2", "\u00fc"]}, {"id": "A3", "reasons": 2}, {"edges": [edge("A1", "A2")]},
             {"accounts": [{"id": "N1", "balance": 2, "country": "DE"}], "edges": [edge("N1", "A2")]}]
    s = Server("--journal", "fuzz.journal", "--timeout", "60")
    c, counts = s.connect(), {}
    for _ in range(bodies):
        body = mutate(draw, json.dumps(draw.choice(seeds)).encode())
        status, _ = s.ask("POST", draw.choice(["/score", "/score", "/explain", "/add"]), body, connection=c)
        counts[status] = counts.get(status, 0) + 1
        assert status in (200, 400, 404, 422), (status, body)
    records = s.ask("GET", "/health")[1]["journal"]
    c.close()
    s.stop()
    s = Server("--journal", "fuzz.journal")
    assert s.ask("GET", "/health")[1]["journal"] == records
    s.stop()
    print(f"{bodies} bodies: {counts}")


def main():
    try:
        ctypes.CDLL("libmicrohttpd.so.12")
    except OSError:
        print("skipped: libmicrohttpd.so.12 is absent (scripts/install-deps test)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_data()
        if len(sys.argv) > 2:
            return fuzz(int(sys.argv[3]))
        s = Server("--timeout", "2")
        test_routes(s)
        test_errors(s)
        count = test_additions(s)
        s.stop()
        lines = [json.loads(x) for x in open("log.jsonl")]
        assert len(lines) > 40 and all(x["model"] or x["status"] >= 400 for x in lines) and count >= 2
        for test in (test_failed_start, test_kill, test_numbers, test_refused_by_a_model, test_damage, test_door, test_full_disk, test_reload, test_labels, test_json, test_access, test_slow_clients):
            test()
            print(test.__name__, "ok", flush=True)


main()
