"""Trains the example model of gptj_tiny_qdq: a decoder built like GPT-J, with
rotary positions, attention and feed-forward side by side, and projections as
Tensordot, but small enough for a repository.

  python make_model.py OUT_FOLDER [--steps=N]

It reads characters and predicts the next one, on text that this file makes
up. Needs TensorFlow (the CPU wheel); takes a few minutes. Writes

  OUT_FOLDER/saved_model/1        the SavedModel, variables unfrozen
  OUT_FOLDER/calibration.npy      windows of text that the model was trained on
  OUT_FOLDER/eval.npy             windows of text that it has not seen
  OUT_FOLDER/eval_next.npy        the next character for each of those

The windows are int32 [records, 64]: one number for each character.
"""

import argparse
import os
import random

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

CHARACTERS = "\n abcdefghijklmnopqrstuvwxyz.,?0123456789+="
WINDOW = 64
WIDTH, HEADS, LAYERS, ROTARY = 64, 4, 3, 8
HEAD_WIDTH = WIDTH // HEADS

ANIMALS = ["fox", "owl", "hare", "crow", "mole", "heron", "otter", "badger"]
COLOURS = ["red", "grey", "brown", "white"]
PLACES = ["in the wood", "by the river", "under the hill", "near the old mill"]
VERBS = ["sees", "finds", "hides", "carries", "counts"]
THINGS = ["berries", "stones", "leaves", "feathers", "nuts"]


def sentence(source):
    """Returns a line of text, whose later parts often depend on earlier ones."""
    kind = source.randrange(3)
    if kind == 0:
        first, second = source.randrange(1, 10), source.randrange(1, 10)
        return f"{first}+{second}={first + second}.\n"
    animal, colour = source.choice(ANIMALS), source.choice(COLOURS)
    verb, thing, place = source.choice(VERBS), source.choice(THINGS), source.choice(PLACES)
    if kind == 1:
        return f"the {colour} {animal} {verb} {thing} {place}.\n"
    return f"who {verb} {thing} {place}? the {animal} {verb} {thing}, the {colour} {animal}.\n"


def text(seed, length):
    """Returns `length` characters of text as numbers; each seed gives its own text."""
    source = random.Random(seed)
    lines, size = [], 0
    while size < length:
        lines.append(sentence(source))
        size += len(lines[-1])
    index = {character: i for i, character in enumerate(CHARACTERS)}
    return np.array([index[c] for c in "".join(lines)[:length]], dtype=np.int32)


def windows(seed, count):
    """Returns `count` windows and the next character for each of their characters."""
    characters = text(seed, count * WINDOW + 1)
    return characters[:-1].reshape(count, WINDOW), characters[1:].reshape(count, WINDOW)


class Dense(tf.Module):
    """Projects the last dimension."""

    def __init__(self, inputs, outputs, bias, name):
        super().__init__(name=name)
        spread = 0.7 / np.sqrt(inputs)
        self.kernel = tf.Variable(tf.random.normal([inputs, outputs], stddev=spread), name="kernel")
        self.bias = tf.Variable(tf.zeros([outputs]), name="bias") if bias else None

    def __call__(self, x):
        with tf.name_scope(self.name):
            y = tf.tensordot(x, self.kernel, axes=[[2], [0]])
            return y if self.bias is None else tf.nn.bias_add(y, self.bias)


class LayerNorm(tf.Module):
    """Normalizes values to mean 0 and variance 1, then scales and shifts them."""

    def __init__(self, name):
        super().__init__(name=name)
        self.gamma = tf.Variable(tf.ones([WIDTH]), name="gamma")
        self.beta = tf.Variable(tf.zeros([WIDTH]), name="beta")

    def __call__(self, x):
        with tf.name_scope(self.name):
            mean, variance = tf.nn.moments(x, [-1], keepdims=True)
            return (x - mean) * tf.math.rsqrt(variance + 1e-5) * self.gamma + self.beta


def rotate(x, sine, cosine):
    """Turns pairs of the first ROTARY dimensions by an angle that grows with
    the position. x: [batch, positions, heads, head width]."""
    turned, kept = x[..., :ROTARY], x[..., ROTARY:]
    even, odd = turned[..., 0::2], turned[..., 1::2]
    pairs = tf.stack([even * cosine - odd * sine, odd * cosine + even * sine], axis=-1)
    return tf.concat([tf.reshape(pairs, tf.shape(turned)), kept], axis=-1)


class Attention(tf.Module):
    """Each position looks at itself and at those before it."""

    def __init__(self):
        super().__init__(name="attn")
        self.q_proj = Dense(WIDTH, WIDTH, False, "q_proj")
        self.k_proj = Dense(WIDTH, WIDTH, False, "k_proj")
        self.v_proj = Dense(WIDTH, WIDTH, False, "v_proj")
        self.out_proj = Dense(WIDTH, WIDTH, False, "out_proj")

    def __call__(self, x):
        with tf.name_scope(self.name):
            batch, positions = tf.shape(x)[0], tf.shape(x)[1]
            frequencies = 10000.0 ** (-np.arange(0, ROTARY, 2, dtype=np.float32) / ROTARY)
            angles = tf.cast(tf.range(positions), tf.float32)[:, None] * frequencies[None, :]
            sine, cosine = tf.sin(angles)[None, :, None, :], tf.cos(angles)[None, :, None, :]
            heads = lambda y: tf.reshape(y, [batch, positions, HEADS, HEAD_WIDTH])
            query = tf.transpose(rotate(heads(self.q_proj(x)), sine, cosine), [0, 2, 1, 3])
            key = tf.transpose(rotate(heads(self.k_proj(x)), sine, cosine), [0, 2, 1, 3])
            value = tf.transpose(heads(self.v_proj(x)), [0, 2, 1, 3])
            scores = tf.matmul(query, key, transpose_b=True) / np.sqrt(HEAD_WIDTH).astype(np.float32)
            order = tf.range(positions)
            scores = tf.where(order[:, None] >= order[None, :], scores, -1e9)
            mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
            return self.out_proj(tf.reshape(mixed, [batch, positions, WIDTH]))


class FeedForward(tf.Module):
    """Applies the usual two projections."""

    def __init__(self):
        super().__init__(name="mlp")
        self.fc_in = Dense(WIDTH, 4 * WIDTH, True, "fc_in")
        self.fc_out = Dense(4 * WIDTH, WIDTH, True, "fc_out")

    def __call__(self, x):
        with tf.name_scope(self.name):
            return self.fc_out(tf.nn.gelu(self.fc_in(x), approximate=True))


class Block(tf.Module):
    """Attention and feed-forward read the same normed values."""

    def __init__(self, number):
        super().__init__(name=f"h_{number}")
        self.scope = f"h_._{number}"
        self.ln_1 = LayerNorm("ln_1")
        self.attn = Attention()
        self.mlp = FeedForward()

    def __call__(self, x):
        with tf.name_scope(self.scope):
            normed = self.ln_1(x)
            return x + self.attn(normed) + self.mlp(normed)


class Decoder(tf.Module):
    """The whole model, from characters to the logits of the next one."""

    def __init__(self):
        super().__init__(name="gptj_tiny")
        self.wte = tf.Variable(tf.random.normal([len(CHARACTERS), WIDTH], stddev=0.5), name="wte")
        self.blocks = [Block(i) for i in range(LAYERS)]
        self.ln_f = LayerNorm("ln_f")
        self.lm_head = Dense(WIDTH, len(CHARACTERS), True, "lm_head")

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="input_ids")])
    def logits(self, input_ids):
        with tf.name_scope("transformer"):
            x = tf.gather(self.wte, input_ids)
            for block in self.blocks:
                x = block(x)
            x = self.ln_f(x)
        return self.lm_head(x)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="input_ids")])
    def serve(self, input_ids):
        return {"logits": self.logits(input_ids)}


def loss_of(model, ids, following):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(following, model.logits(ids))
    return tf.reduce_mean(losses)


def train(model, steps, batch=32):
    """Trains by Adam with a learning rate that rises and then falls to zero."""
    characters = tf.constant(text(1, 2_000_000))
    variables = model.trainable_variables
    means = [tf.Variable(tf.zeros_like(v)) for v in variables]
    squares = [tf.Variable(tf.zeros_like(v)) for v in variables]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.float32)])
    def step(starts, number, rate):
        chunk = tf.gather(characters, starts[:, None] + tf.range(WINDOW + 1)[None, :])
        with tf.GradientTape() as tape:
            loss = loss_of(model, chunk[:, :-1], chunk[:, 1:])
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, variables), 1.0)
        for variable, gradient, mean, square in zip(variables, gradients, means, squares):
            gradient = tf.convert_to_tensor(gradient)
            mean.assign(0.9 * mean + 0.1 * gradient)
            square.assign(0.98 * square + 0.02 * gradient * gradient)
            change = (mean / (1 - 0.9**number)) / (tf.sqrt(square / (1 - 0.98**number)) + 1e-8)
            variable.assign_sub(rate * change)
        return loss

    draw = np.random.RandomState(1)
    for number in range(1, steps + 1):
        starts = draw.randint(0, len(characters) - WINDOW - 1, batch).astype(np.int32)
        rate = 3e-3 * min(number / 100, (steps + 1 - number) / steps * 1.1, 1)
        loss = step(tf.constant(starts), tf.constant(number, tf.float32), tf.constant(rate, tf.float32))
        if number % 100 == 0:
            print(f"step {number}: perplexity {np.exp(loss):.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=1200)
    flags = parser.parse_args()
    tf.keras.utils.set_random_seed(1)
    tf.config.experimental.enable_op_determinism()
    model = Decoder()
    train(model, flags.steps)

    ids, following = windows(2, 512)
    calibration, _ = windows(1, 128)
    perplexity = float(np.exp(loss_of(model, ids, following)))
    shares = np.bincount(text(1, 500_000), minlength=len(CHARACTERS)) / 500_000
    unigram = float(np.exp(-np.mean(np.log(shares[following] + 1e-12))))
    print(f"perplexity on unseen text {perplexity:.3f}, of single characters {unigram:.3f}")

    os.makedirs(flags.folder, exist_ok=True)
    tf.saved_model.save(model, os.path.join(flags.folder, "saved_model", "1"), signatures={"serving_default": model.serve})
    np.save(os.path.join(flags.folder, "calibration.npy"), calibration)
    np.save(os.path.join(flags.folder, "eval.npy"), ids)
    np.save(os.path.join(flags.folder, "eval_next.npy"), following)


if __name__ == "__main__":
    main()
