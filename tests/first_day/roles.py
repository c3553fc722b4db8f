"""What four people do on their first day: each a list of commands in an empty folder."""

from __future__ import annotations

from tests.first_day.steps import Step, python

MAKE_SHOP = """
import datetime as dt, decimal
import numpy as np, pandas as pd
rng = np.random.default_rng(0)
kinds = np.array(["boots", "shoes", "socks", "hats", "gloves", "scarves"])
which = rng.integers(0, len(kinds), 900)
rows = 2 * rng.normal(size=(len(kinds), 64))[which] + rng.normal(size=(900, 64))
shop = pd.DataFrame({
    "sku": [f"sku-{i}" for i in range(900)],
    "embedding": list(rows.astype(np.float32)),
    "kind": pd.Series(kinds[which]).where(rng.random(900) < 0.7),  # NaN: nobody has labelled it
    "title": [f"{kinds[k]} number {i}" for i, k in enumerate(which)],
    "price": [decimal.Decimal(i) / 10 for i in range(900)],
    "seen": pd.Timestamp("2026-01-01") + pd.to_timedelta(range(900), unit="h"),
})
shop[:800].to_parquet("shop.parquet")
shop[800:].to_parquet("new.parquet")
print(len(shop), "rows,", shop.kind.isna().sum(), "without a kind")
"""

DATA_SCIENTIST = (
    python(MAKE_SHOP, r"900 rows, \d+ without a kind"),
    Step("everhash advise --rows 800 --labels 6 --dim 64", "everhash create"),
    Step(
        "everhash ingest shop.ever shop.parquet --create --features embedding "
        "--label kind --id sku --payload title --payload price --payload seen",
        "800",
    ),
    Step("everhash stats shop.ever", "800"),
    Step(
        "everhash search shop.ever new.parquet --features embedding --id sku -k 3 --limit 2",
        "sku-800",
    ),
    Step("everhash search shop.ever --like sku-3 --labels boots -k 2 --json", '"label": "boots"'),
    Step("everhash entries shop.ever --text 'number 17' --limit 3", "number 17"),
    Step("everhash label shop.ever bots sku-4", "boots", code=3),  # a misspelt label is not learned
    Step("everhash label shop.ever sandals sku-4 --new", "1 entry"),
    Step("everhash labels shop.ever", "sandals"),
    Step("everhash predict shop.ever new.parquet --features embedding --limit 2", "."),
    Step("everhash export shop.ever out.parquet", ""),
    Step("everhash ingest copy.ever out.parquet --create", "800"),
    python(
        """
import everhash, pandas as pd
new = pd.read_parquet("new.parquet")
with everhash.open("shop.ever") as shop:
    payloads = new[["title", "price", "seen"]].to_dict("records")
    shop.ingest(new.embedding, new.kind, new.sku, payloads=payloads)
    found = shop.search(new.embedding[:50], k=1, labels="boots", payloads=True)
    print(found.to_pandas().head(3))
    known = new.kind[:50].notna().to_numpy()
    best = shop.predict(new.embedding[:50])
    print("right:", (best[known] == new.kind[:50].to_numpy()[known]).mean())
""",
        r"right: (0\.9|1\.0)",
    ),
    Step("everhash verify shop.ever", "."),
)

SCIKIT_LEARN_USER = (
    python(
        """
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from everhash import OnlineHasher
X, y = load_digits(return_X_y=True, as_frame=True)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)
hasher = OnlineHasher(bits=16).set_output(transform="pandas")
codes = hasher.fit_transform(X, y)
print(codes.iloc[:2, :4])
print("score", hasher.score(X_test, y_test), hasher.predict_proba(X_test[:1]).shape)
both = make_pipeline(StandardScaler(), OnlineHasher(), LogisticRegression(max_iter=500))
print("pipeline", clone(both).fit(X, y).score(X_test, y_test))
search = GridSearchCV(OnlineHasher(), {"bits": [8, 16], "features": [0, 200]}, cv=3, n_jobs=2)
print("best", search.fit(X, y).best_params_, search.score(X_test, y_test))
hasher.save("digits.safetensors")
print("loaded", OnlineHasher.load("digits.safetensors").score(X_test, y_test))
print(len(hasher._repr_html_()), "characters of HTML")
""",
        r"score 0\.9(.|\n)*pipeline 0\.9(.|\n)*best(.|\n)*loaded 0\.9(.|\n)*HTML",
    ),
    python(
        """
import numpy as np
from sklearn.datasets import load_digits
from everhash import OnlineHasher
X, y = load_digits(return_X_y=True)
y = np.where(np.arange(len(y)) % 4, y, -1)  # scikit-learn's way to say: unlabelled
hasher = OnlineHasher().fit(X, y)
""",
        "-1",
    ),
)

POST = "curl -sS -H 'Content-Type: application/json' http://127.0.0.1:$PORT"

WEB_DEVELOPER = (
    python(
        """
import json
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
with open("scans.jsonl", "w") as lines:
    for i in range(600):
        row = {"id": i, "features": X[i].tolist(), "label": f"digit {y[i]}" if i % 4 else None}
        print(json.dumps({**row, "payload": {"title": f"scan {i}"}}), file=lines)
json.dump({"rows": [X[600].tolist()], "k": 2, "payloads": True}, open("query.json", "w"))
json.dump({"rows": X[600].tolist()}, open("wrong.json", "w"))
""",
    ),
    Step("cat scans.jsonl | everhash ingest scans.ever - --create", "600"),
    Step(
        "everhash serve scans.ever --port $PORT --cors https://shop.example --access-log",
        "serving scans.ever at http://127.0.0.1:",
        serves=True,
    ),
    Step("everhash serve scans.ever --port 0", r"^error: scans\.ever is being written", code=8),
    Step(f"{POST}/search -d @query.json", '"title": ?"scan'),
    Step(f"{POST}/search -d @wrong.json", "a list of numbers for each row|list of rows"),
    Step(f"{POST}/get -d '{{\"ids\": [100000]}}'", "no entry has id 100000"),
    Step("curl -sS http://127.0.0.1:$PORT/docs", "/search"),
    Step("curl -sS -o /dev/null -w '%{http_code}\\n' http://127.0.0.1:$PORT/thumbnail?id=4", "404"),
    Step(
        f"{POST}/search -i -H 'Origin: https://shop.example' -d @query.json",
        "(?i)access-control-allow-origin: https://shop.example",
    ),
    Step("curl -sS http://127.0.0.1:$PORT/entries?text=scan%2017\\&limit=2", "scan 17"),
    Step("everhash search http://127.0.0.1:$PORT --like 4 -k 3", "digit"),
    Step("everhash label http://127.0.0.1:$PORT 'digit 0' 0", "1 entry"),
    Step("everhash stats http://127.0.0.1:$PORT --json", '"entries": 600'),
    python(
        """
import os, everhash
with everhash.connect(f"http://127.0.0.1:{os.environ['PORT']}") as scans:
    print(scans.search_like([4], k=3).labels.tolist())
    try:
        scans.get(["nobody"])
    except everhash.EverhashError as error:
        print(error)
""",
        "no entry has id 'nobody'",
    ),
)

RESEARCHER = (
    python(
        """
import numpy as np
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
np.savez("mine.npz", X=X, y=y)
""",
    ),
    Step("everhash bench --help", "run"),
    Step("everhash methods", "mihash"),
    Step(
        "everhash bench run table1 --data mine.npz --seeds 1 --methods everhash,lsh --bits 16",
        "(?s)mine.*everhash",
    ),
    Step("everhash bench report everhash-results/table1.jsonl --out pages", "."),
    Step("everhash bench report everhash-results/table1.jsonl --out pages", "--overwrite", code=2),
    Step("EVERHASH_DATA=/nowhere everhash bench run table2 --seeds 1 --data no-such", ".", code=3),
)

ROLES = {
    "data scientist": DATA_SCIENTIST,
    "scikit-learn user": SCIKIT_LEARN_USER,
    "web developer": WEB_DEVELOPER,
    "researcher": RESEARCHER,
}
