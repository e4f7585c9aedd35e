"""Writes the event files beside it, with the writers of TensorFlow, TensorBoard and tensorboardX, and what
TensorBoard's own EventAccumulator reads from them (expected.json).

Python 3.11.7, tensorflow-cpu 2.21.0, tensorboard 2.21.0, tensorboardX 2.6.5, numpy 2.4.6:
python make.py
"""

import json
import math
import os
import shutil

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorboardX
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.plugins.scalar.summary_v2 import scalar_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter

here = os.path.dirname(os.path.abspath(__file__))


def fresh(name):
    folder = os.path.join(here, name)
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def rename(folder):
    """The names have the time and the host, which differ each time."""
    for root, _, names in os.walk(folder):
        for i, name in enumerate(sorted(names)):
            os.rename(os.path.join(root, name), os.path.join(root, f"events.out.tfevents.{i}"))


def tensorflow2():
    folder = fresh("tensorflow")
    for part in ("train", "validation"):
        writer = tf.summary.create_file_writer(os.path.join(folder, part))
        with writer.as_default():
            tf.summary.text("note", "a text", step=0)
            for step in range(5):
                tf.summary.scalar("epoch_loss", (1.0 if part == "train" else 2.0) / (step + 1), step=step)
                tf.summary.histogram("weights", np.arange(10.0), step=step)
            tf.summary.scalar("epoch_loss", math.nan, step=5)
        writer.close()
    return folder


def tensorflow1():
    folder = fresh("tensorflow1")
    with tf.Graph().as_default() as graph:
        writer = tf.compat.v1.summary.FileWriter(folder, graph=graph)
        loss = tf.compat.v1.placeholder(tf.float32, [])
        tf.compat.v1.summary.scalar("loss", loss)
        merged = tf.compat.v1.summary.merge_all()
        with tf.compat.v1.Session() as session:
            for step in range(5):
                writer.add_summary(session.run(merged, {loss: 1 / (step + 1)}), 10 * step)
        writer.close()
    return folder


def x():
    folder = fresh("tensorboardX")
    with tensorboardX.SummaryWriter(folder, flush_secs=1) as writer:
        writer.add_text("note", "a text", 0)
        for step in range(5):
            writer.add_scalar("loss", 1 / (step + 1), step)
            writer.add_scalar("val/loss", 2 / (step + 1), step)
            writer.add_histogram("weights", np.arange(10.0), step, bins=[0, 5, 10])
        writer.add_scalar("loss", math.inf, 5)
        writer.add_image("picture", np.zeros((3, 8, 8), np.uint8), 5)
    return folder


def board():
    """Tensors of each type, as numbers and as bytes."""
    folder = fresh("tensorboard")
    writer = EventFileWriter(folder)

    def add(step, value):
        writer.add_event(Event(step=step, summary=Summary(value=[value])))

    for step in range(3):
        writer.add_event(Event(step=step, summary=scalar_pb("scalar", step - 0.5)))
    for kind in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bfloat16"):
        kind = getattr(tf, kind)
        for step, number in enumerate((3, 0, -2.5)):
            if kind.is_integer:
                number = int(number) % (256 if kind.is_unsigned else 1 << 62)
                number = number if kind.is_unsigned or step < 2 else -2
            array = np.array(number, dtype=kind.as_numpy_dtype)
            add(step, Summary.Value(tag=kind.name, tensor=TensorProto.FromString(tf.make_tensor_proto(array).SerializeToString())))
            content = TensorProto(dtype=kind.as_datatype_enum, tensor_content=array.tobytes())
            add(step, Summary.Value(tag=kind.name + "/bytes", tensor=content))
    add(0, Summary.Value(tag="vector", tensor=TensorProto.FromString(tf.make_tensor_proto([1.0, 2.0]).SerializeToString())))
    writer.close()
    return folder


expected = {}
for folder in (tensorflow2(), tensorflow1(), x(), board()):
    rename(folder)
    for root, _, names in os.walk(folder):
        for name in names:
            events = EventAccumulator(os.path.join(root, name), size_guidance={"tensors": 0, "scalars": 0})
            events.Reload()
            read = {tag: [[e.step, str(float(e.value))] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
            for tag in events.Tags()["tensors"]:
                plugin = events.summary_metadata[tag].plugin_data.plugin_name if tag in events.summary_metadata else ""
                numbers = [[e.step, tf.make_ndarray(e.tensor_proto)] for e in events.Tensors(tag)]
                if plugin in ("", "scalars") and numbers[0][1].size == 1:
                    read[tag] = [[step, str(float(number.reshape(())))] for step, number in numbers]
            expected[os.path.relpath(os.path.join(root, name), here)] = read
with open(os.path.join(here, "expected.json"), "w") as file:
    json.dump(expected, file, indent=1, sort_keys=True)
    file.write("\n")
