"""What the PyTorch rivals share: the device, a layer norm with a scalar gain, first weights."""
import torch


def device_option(parser):
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=0, help="0: PyTorch's choice")


def compile_option(parser):
    parser.add_argument("--compile", nargs="?", const="default", metavar="MODE",
                        help="torch.compile, by a mode of it; reduce-overhead makes CUDA graphs")


def compiled(model, args):
    return torch.compile(model, mode=args.compile) if args.compile else model


def prepare(args):
    """Seeds, sets the threads, and returns what waits for the device."""
    torch.manual_seed(0)
    if args.threads:
        torch.set_num_threads(args.threads)
    return torch.cuda.synchronize if args.device == "cuda" else lambda: None


def weight(*shape, deviation=0.02):
    return torch.nn.Parameter(deviation * torch.randn(*shape))


def layernorm(x, gamma, delta):
    """Equation 1 of the paper: x [.., D], gamma one number, delta [D]."""
    centred = x - x.mean(-1, keepdim=True)
    return gamma * centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5) + delta


def peak_gib(device):
    return torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else None
