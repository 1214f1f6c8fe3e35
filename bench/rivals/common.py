"""What the rivals share: sizes as options, medians of timed steps, one line of JSON."""
import argparse
import json
import statistics
import time


def options(description, **defaults):
    """A parser with an option for every default; the default gives the type."""
    parser = argparse.ArgumentParser(description=description)
    for name, value in defaults.items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(value), default=value,
                            help=f"[{value}]")
    return parser


def median_seconds(step, finish, rounds, warmup=2):
    """Median time of step(); finish() waits until the device is done."""
    times = []
    for i in range(warmup + rounds):
        start = time.perf_counter()
        step()
        finish()
        if i >= warmup:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def report(**fields):
    print(json.dumps({k: round(v, 6) if isinstance(v, float) else v for k, v in fields.items()}),
          flush=True)
