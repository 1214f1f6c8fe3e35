#!/usr/bin/env python3
"""Draws hills.jpg, the picture that `make demo` completes: sky, clouds, hills, a lake and a fence, all
computed, so that nobody has rights in it. Wants numpy and Pillow.

    python3 examples/pictures/hills.py examples/pictures/hills.jpg
"""
import sys

import numpy
from PIL import Image

HEIGHT, WIDTH = 320, 480


def noise(draw, height, width, octaves, stretch=1.0):
    """Smooth noise 0 .. 1: grids of random numbers, each half as coarse and half as strong."""
    total, strength = numpy.zeros((height, width)), 0.0
    for octave in range(octaves):
        rows, columns = 2 + 2**octave, 2 + int(stretch * 2**octave * width / height)
        grid = Image.fromarray(draw.random((rows, columns)).astype(numpy.float32))
        total += numpy.asarray(grid.resize((width, height), Image.BICUBIC)) / 2**octave
        strength += 1 / 2**octave
    return numpy.clip(total / strength, 0, 1)


def blend(picture, colour, mask):
    return picture + mask[..., None] * (numpy.asarray(colour) - picture)


def hill(draw, picture, height, rough, colour, texture):
    """A ridge with light from the left; `colour` with grain."""
    line = height + 2 * rough * (noise(draw, HEIGHT, WIDTH, 7)[0] - 0.5)
    y = numpy.arange(HEIGHT)[:, None]
    mask = numpy.clip(y - line[None, :], 0, 1)
    slope = numpy.gradient(numpy.convolve(numpy.pad(line, 20, "edge"), numpy.ones(41) / 41, "valid"))
    light = 1 - 0.25 * numpy.clip(slope, -1, 1)[None, :] + texture * (noise(draw, HEIGHT, WIDTH, 8) - 0.5)
    shade = numpy.asarray(colour)[None, None, :] * light[..., None]
    return picture + mask[..., None] * (shade - picture)


def main(path):
    draw = numpy.random.default_rng(7)
    y = numpy.linspace(0, 1, HEIGHT)[:, None]
    sky = numpy.array([0.36, 0.58, 0.86]) + (y[..., None] ** 0.8) * numpy.array([0.45, 0.30, 0.08])
    picture = numpy.broadcast_to(sky, (HEIGHT, WIDTH, 3)).copy()
    clouds = numpy.clip((noise(draw, HEIGHT, WIDTH, 7, 0.5) - 0.52) * 5, 0, 1) * (1 - y) ** 0.7
    picture = blend(picture, [0.98, 0.97, 0.95], clouds)
    picture = hill(draw, picture, 150, 90, [0.50, 0.58, 0.68], 0.15)
    picture = hill(draw, picture, 185, 80, [0.38, 0.48, 0.42], 0.35)
    picture = hill(draw, picture, 215, 60, [0.30, 0.42, 0.22], 0.60)
    lake = numpy.clip(numpy.arange(HEIGHT)[:, None] - 245, 0, 1) * numpy.ones((1, WIDTH))
    mirror = picture[numpy.clip(490 - numpy.arange(HEIGHT), 0, HEIGHT - 1)] * 0.8 + [0.02, 0.05, 0.09]
    ripple = 0.10 * (noise(draw, HEIGHT, WIDTH, 8, 0.25) - 0.5)
    picture = picture + lake[..., None] * (mirror + ripple[..., None] - picture)
    picture = hill(draw, picture, 285, 30, [0.46, 0.52, 0.24], 0.9)
    x = numpy.arange(WIDTH)[None, :]
    rows = numpy.arange(HEIGHT)[:, None]
    for rail in (262, 274):
        bent = rail + 4 * numpy.sin(x / 90.0)
        picture = blend(picture, [0.42, 0.33, 0.25], numpy.clip(2 - numpy.abs(rows - bent), 0, 1))
    posts = numpy.clip(3 - numpy.abs((x % 60) - 30), 0, 1) * ((rows > 254) & (rows < 296))
    picture = blend(picture, [0.36, 0.28, 0.21], posts)
    picture += 0.008 * draw.standard_normal((HEIGHT, WIDTH, 1))
    Image.fromarray((numpy.clip(picture, 0, 1) * 255).astype(numpy.uint8)).save(path, quality=88)


if __name__ == "__main__":
    main(sys.argv[1])
