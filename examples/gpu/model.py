"""ResNet-50 for Triton's Python backend on an NVIDIA GPU, built to be limited by the GPU and not by Python.

Parameters of the model configuration (string_value):
  precision  fp32 (no TensorFloat-32), tf32, or fp16. PyTorch has no INT8 convolution on CUDA, so there is no int8 here.
  untuned    "yes": plain eager PyTorch as one would first write it; for comparison.

What makes the difference: one CUDA graph a batch size (no launch overhead), pinned staging buffers filled in place, input as it
came over the wire (FP32 or UINT8) and normalised on the GPU, one CPU thread an instance, tensors by DLPack without NumPy.

Weights are seeded, not trained: speed does not depend on their values, and accuracy is judged elsewhere.
"""

import json
import time

import torch
import torchvision
import triton_python_backend_utils as pb_utils

SIDE = 224
CLASSES = 1000
# ImageNet statistics that torchvision documents for its ResNet-50, for pixels 0..255.
MEAN = (123.675, 116.28, 103.53)
STD = (58.395, 57.12, 57.375)
# Batches between two of these run in the next larger graph; the rows beyond the batch are computed and thrown away.
GRAPH_SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128)
SEED = 20190731
# Untrained logits differ little; spread out, the top class does not flip between batch sizes by rounding.
LOGIT_GAIN = 8.0


class Network(torch.nn.Module):
    """NHWC pixels 0..255 in, probabilities out; normalisation and layout change happen on the device."""

    def __init__(self, dtype):
        super().__init__()
        torch.manual_seed(SEED)
        self.body = torchvision.models.resnet50(weights=None)
        with torch.no_grad():
            self.body.fc.weight.mul_(LOGIT_GAIN)
        self.dtype = dtype
        self.register_buffer("mean", torch.tensor(MEAN).view(1, 3, 1, 1))
        self.register_buffer("scale", 1.0 / torch.tensor(STD).view(1, 3, 1, 1))

    def forward(self, pixels):
        images = pixels.permute(0, 3, 1, 2).to(self.dtype)
        images = (images - self.mean) * self.scale
        return torch.softmax(self.body(images).float(), dim=1)


def build_network(precision, device):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    dtype = torch.float16 if precision == "fp16" else torch.float32
    network = Network(dtype).eval()
    return network.to(device=device, dtype=dtype, memory_format=torch.channels_last)


class GraphRunner:
    """Static buffers and one CUDA graph for each batch size up to the maximum."""

    def __init__(self, network, max_batch, input_dtype, device):
        torch.backends.cudnn.benchmark = True
        self.stream = torch.cuda.Stream(device)
        self.staging = torch.empty((max_batch, SIDE, SIDE, 3), dtype=input_dtype, pin_memory=True)
        self.answers = torch.empty((max_batch, CLASSES), dtype=torch.float32, pin_memory=True)
        self.pixels = torch.zeros((max_batch, SIDE, SIDE, 3), dtype=input_dtype, device=device)
        self.sizes = sorted({size for size in GRAPH_SIZES if size < max_batch} | {max_batch})
        self.graphs = {}
        pool = None
        with torch.inference_mode(), torch.cuda.stream(self.stream):
            for size in reversed(self.sizes):  # the largest first, so that the smaller ones fit into its memory
                for _ in range(3):
                    network(self.pixels[:size])
                self.stream.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, pool=pool, stream=self.stream):
                    output = network(self.pixels[:size])
                pool = pool or graph.pool()
                self.graphs[size] = (graph, output)

    def run(self, parts):
        """Probabilities of all images, on the CPU; `parts` are CPU tensors with a batch dimension."""
        count = 0
        for part in parts:
            self.staging[count : count + part.shape[0]].copy_(part)
            count += part.shape[0]
        size = next(size for size in self.sizes if size >= count)
        graph, output = self.graphs[size]
        with torch.cuda.stream(self.stream):
            self.pixels[:count].copy_(self.staging[:count], non_blocking=True)
            graph.replay()
            self.answers[:count].copy_(output[:count], non_blocking=True)
        self.stream.synchronize()
        return self.answers[:count].clone()


class EagerRunner:
    """The obvious first version: concatenate, copy, run, copy back."""

    def __init__(self, network, device):
        self.network = network
        self.device = device

    def run(self, parts):
        with torch.inference_mode():
            return self.network(torch.cat(parts).to(self.device)).cpu()


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        parameters = {name: value["string_value"] for name, value in config["parameters"].items()}
        precision = parameters.get("precision", "fp32")
        if precision not in ("fp32", "tf32", "fp16"):
            raise pb_utils.TritonModelException(f"parameter precision is '{precision}'; use fp32, tf32 or fp16")
        device = torch.device("cuda", int(args["model_instance_device_id"]))
        untuned = parameters.get("untuned") == "yes"
        if not untuned:
            torch.set_num_threads(1)
        self.input_name = config["input"][0]["name"]
        self.output_name = config["output"][0]["name"]
        input_dtype = torch.uint8 if config["input"][0]["data_type"] == "TYPE_UINT8" else torch.float32
        started = time.monotonic()
        network = build_network(precision, device)
        if untuned:
            self.runner = EagerRunner(network, device)
        else:
            self.runner = GraphRunner(network, max(1, config["max_batch_size"]), input_dtype, device)
        pb_utils.Logger.log_info(f"{args['model_instance_name']}: ready after {time.monotonic() - started:.1f} s")

    def execute(self, requests):
        parts = [
            torch.from_dlpack(pb_utils.get_input_tensor_by_name(request, self.input_name).to_dlpack())
            for request in requests
        ]
        answers = self.runner.run(parts)
        responses = []
        first = 0
        for part in parts:
            rows = answers[first : first + part.shape[0]]
            first += part.shape[0]
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack(self.output_name, rows)]))
        return responses
