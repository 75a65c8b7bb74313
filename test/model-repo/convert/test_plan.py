"""The plan that the stack writes is read whole or refused by field."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import plan_json
from convert.errors import ConversionError
from convert.plan import RESNET50, Model, parse_plan, read_plan


def test_default_model_is_the_documents_resnet50() -> None:
    plan = parse_plan(plan_json())
    assert plan.model == RESNET50
    assert plan.artefact("small").batch_sizes == (4,)


def test_model_by_parameters() -> None:
    model = {
        "source": "gs://b/m.zip",
        "checksum": "sha256:" + "0" * 64,
        "signature": "predict",
        "inputTensor": "x",
        "outputTensor": "y",
        "layout": "NCHW",
        "channels": "BGR",
        "mean": [1, 2, 3],
        "scale": 0.5,
        "scores": "logits",
    }
    assert parse_plan(plan_json(model=model)).model == Model(
        source="gs://b/m.zip",
        checksum="sha256:" + "0" * 64,
        signature="predict",
        input_tensor="x",
        output_tensor="y",
        layout="NCHW",
        channels="BGR",
        mean=(1, 2, 3),
        scale=(0.5,),
        scores="logits",
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schemaVersion": 2}, "schemaVersion is 2"),
        ({"artefacts": None}, "artefacts is not a list"),
        ({"artefacts": [1]}, r"artefacts\[0\] is not an object"),
        ({"model": 3}, "model is 3"),
        ({"model": {"source": 1}}, "model.source is 1"),
        ({"model": {}}, "model.source is None"),
        ({"model": {"source": "m", "mean": [1, 2]}}, "model.mean"),
        ({"model": {"source": "m", "scale": 0}}, "model.scale is 0"),
        ({"model": {"source": "m", "sclae": 1}}, "unknown keys sclae"),
        ({"model": {"source": "m", "layout": "CHWN"}}, "model.layout is 'CHWN'"),
        ({"model": {"source": "m", "checksum": "crc:1"}}, "model.checksum"),
        ({"calibration": []}, "calibration is"),
        ({"calibration": {"source": "a", "count": 0}}, "calibration.count is 0"),
        ({"artefact": {"name": "../x"}}, "name is"),
        ({"artefact": {"precision": "bf16"}}, "precision is 'bf16'"),
        ({"artefact": {"platform": "other"}}, "platform is 'other'"),
        ({"artefact": {"platform": "tensorrt_plan"}}, "builtMaxBatchSize is missing"),
        ({"artefact": {"builtMaxBatchSize": 2}}, "batches of 4, but engines are built for 2"),
        ({"artefact": {"batchSizes": []}}, "batchSizes is"),
        ({"artefact": {"batchSizes": [True]}}, "batchSizes is True"),
        ({"artefact": {"input": None}}, "no input"),
        ({"artefact": {"output": {"name": "p", "dims": [1, 2]}}}, "output.dims"),
    ],
)
def test_refuses(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConversionError, match=message) as caught:
        parse_plan(plan_json(**change))
    assert caught.value.kind == "plan"


def test_refuses_another_layout_than_clients_send() -> None:
    entry = {"input": {"name": "input", "type": "FP32", "dims": [3, 8, 8], "format": "FORMAT_NCHW"}}
    with pytest.raises(ConversionError, match="FORMAT_NCHW, not FORMAT_NHWC"):
        parse_plan(plan_json(artefact=entry))


def test_unknown_artefact_lists_the_known() -> None:
    with pytest.raises(ConversionError, match='no artefact "big"; the plan has small'):
        parse_plan(plan_json()).artefact("big")


@pytest.mark.parametrize(
    ("text", "message"), [(None, "cannot be read"), ("{", "is not JSON"), ("[]", "not a JSON object")]
)
def test_unreadable_file(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "plan.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConversionError, match=re.escape(str(path)) + ".*" + message):
        read_plan(path)


def test_reads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_json(calibration={"source": "gs://b/c", "count": 5})))
    assert read_plan(path).calibration is not None
