"""`everhash predict`: name the label of each row."""

from __future__ import annotations

from everhash.cli.arguments import AsJsonLines, Features, Target, open_collection
from everhash.cli.formatting import print_columns, print_json, printable
from everhash.cli.inputs import Format
from everhash.cli.queries import IdColumn, Limit, QueryFile, QuerySource, shown_name
from everhash.wire.labels import label_to_json


def predict(
    target: Target,
    queries: QueryFile,
    features: Features = None,
    id_column: IdColumn = None,
    limit: Limit = None,
    form: Format = None,
    as_json: AsJsonLines = False,
) -> None:
    """Name the likeliest label of each row of a file.

    Example: everhash predict shop.ever new.parquet --features embedding --id sku
    """
    source = QuerySource(queries, features, id_column, limit, form)
    source.check()
    with open_collection(target, readonly=True) as collection:
        for batch in source.batches("predicting", collection.stats()["dim"]):
            labels = map(label_to_json, collection.predict(batch.X).tolist())
            answers = [
                {**name, "label": label} for name, label in zip(batch.names(), labels, strict=True)
            ]
            if as_json:
                for answer in answers:
                    print_json(answer)
            else:
                rows = [[shown_name(answer), printable(answer["label"])] for answer in answers]
                print_columns(["query", "label"], rows, right=1)
