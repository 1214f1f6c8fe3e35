"""Anomalous nodes: train on the labelled half of a network, look at the other, ask why."""

import numpy

import basin

rng = numpy.random.default_rng(0)
x = rng.normal(size=(400, 6))
edges = rng.integers(400, size=(1200, 2))
fraud = x[:, 0] + x[:, 1] > 1.8

known = numpy.where(numpy.arange(400) < 200, fraud, -1)  # -1: nobody knows
detector = basin.tasks.AnomalyDetector(epochs=60, members=1, hops=0, threads=1)
detector.fit(x, known, edges=edges)

hidden = numpy.where(numpy.arange(400) < 200, -1, fraud)
figures = detector.measure(x, hidden, edges=edges)
print("better than chance:", figures["auroc"] > 0.8)
why = detector.explain(x, int(numpy.flatnonzero(fraud)[0]), edges=edges)
print("columns that count:", sorted(feature["column"] for feature in why.features[:2]))
