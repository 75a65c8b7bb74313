"""Checks of a given ONNX file, and the few repairs that make it servable."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from ..errors import ConversionError
from .serving import Network, check_tensor_names

Array = NDArray[Any]


def load(path: Path) -> onnx.ModelProto:
    """Raises ConversionError: `model` if the file is no ONNX model, `unsupported-op` naming the node."""
    try:
        model = onnx.load(path)
        if not model.graph.node:
            raise ValueError("it has no nodes")
    except Exception as error:
        raise ConversionError(
            "model", f"{path} is no ONNX model: {str(error).splitlines()[0]}", "Export it again, or copy it again"
        ) from error
    check_operations(model)
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        reason = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
        raise ConversionError("model", f"{path} is no valid ONNX model: {reason}", "Export it again") from error
    return model


def check_operations(model: onnx.ModelProto) -> None:
    """Raises ConversionError (`unsupported-op`) naming the nodes whose operation is not part of ONNX."""
    opsets = {opset.domain or "ai.onnx": opset.version for opset in model.opset_import}
    own = {(function.domain, function.name) for function in model.functions}
    unknown = []
    for index, node in enumerate(model.graph.node):
        domain = node.domain or "ai.onnx"
        if (node.domain, node.op_type) in own:
            continue
        name = "" if domain == "ai.onnx" else domain
        if not onnx.defs.has(node.op_type, opsets.get(domain, 1), name):
            unknown.append(f"{node.op_type} (node {node.name or index}, domain {domain})")
    if unknown:
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise ConversionError(
            "unsupported-op",
            f"the model uses operations that are not part of ONNX: {', '.join(unknown[:5])}{more}",
            "Export it without custom operations",
        )


def dimensions(value: onnx.ValueInfoProto) -> list[int | None] | None:
    """Sizes, None where open; None for a tensor of unknown rank."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]


def names_of(model: onnx.ModelProto, input_name: str, output_name: str) -> tuple[str, str]:
    """The given names, or the only ones there are when empty. Wrong ones are refused by `check_tensor_names`."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [tensor.name for tensor in model.graph.input if tensor.name not in weights]
    outputs = [tensor.name for tensor in model.graph.output]
    return (
        input_name or (inputs[0] if len(inputs) == 1 else ""),
        output_name or (outputs[0] if len(outputs) == 1 else ""),
    )


def with_open_batch(model: onnx.ModelProto, network: Network) -> onnx.ModelProto:
    """A copy whose batch dimension is open, for a model whose image size and layout are right.

    A model exported for a batch of one usually holds it in its input and in constant shapes of Reshape; both are opened.
    Raises ConversionError (`shape`) if the input is of another shape.
    """
    check_tensor_names(model, network)
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    image = next(tensor for tensor in graph.input if tensor.name == network.input_name)
    shape = dimensions(image)
    size = [network.height, network.width]
    wanted = [*size, 3] if network.layout == "NHWC" else [3, *size]
    if shape is None or len(shape) != 4 or any(s not in (None, w) for s, w in zip(shape[1:], wanted)):
        described = "of unknown rank" if shape is None else str(shape).replace("None", "any")
        raise ConversionError(
            "shape",
            f"the input is {described}; {str([None, *wanted]).replace('None', 'any')} ({network.layout}) is needed",
            "Say the model's size in the artefact's input, and its layout in model.layout",
        )
    batch = shape[0]
    for index, value in enumerate(["N", *wanted]):
        dimension = image.type.tensor_type.shape.dim[index]
        dimension.Clear()
        if isinstance(value, int):
            dimension.dim_value = value
        else:
            dimension.dim_param = value
    if batch is not None:
        _open_reshapes(graph, batch)
        del graph.value_info[:]
        for output in graph.output:
            if dimensions(output):
                output.type.tensor_type.shape.dim[0].dim_param = "N"
    return result


def _open_reshapes(graph: onnx.GraphProto, batch: int) -> None:
    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for tensor in graph.initializer:
        if tensor.name in shapes:
            target = numpy_helper.to_array(tensor).copy()
            if target.size > 1 and target[0] == batch:
                target[0] = 0  # "as in the input"
                tensor.CopyFrom(numpy_helper.from_array(target, tensor.name))


def run(model: onnx.ModelProto | Path, feeds: Iterable[Array]) -> Array:
    """Answers of a model with one input and one output, on the CPU."""
    import onnxruntime

    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return np.concatenate([np.asarray(session.run(None, {name: feed})[0]) for feed in feeds])


def check_batching(served: onnx.ModelProto, network: Network) -> None:
    """Raises ConversionError (`shape`) unless the model answers batches of 1 and 3 with as many rows."""
    tensor = served.graph.input[0].type.tensor_type
    element = np.uint8 if tensor.elem_type == onnx.TensorProto.UINT8 else np.float32
    for batch in (1, 3):
        pixels = np.full((batch, network.height, network.width, 3), 128, element)
        try:
            shape = list(run(served, [pixels]).shape)
        except Exception as error:
            raise ConversionError(
                "shape",
                f"the model does not run with a batch of {batch}: {str(error).splitlines()[0]}",
                "Export it with an open (dynamic) batch dimension",
            ) from error
        if shape != [batch, network.classes]:
            raise ConversionError(
                "shape",
                f"the model answers a batch of {batch} with shape {shape}, not [{batch}, {network.classes}]",
                "Export it with an open (dynamic) batch dimension, and check the artefact's output",
            )
