"""Actor and critic with a shared first layer (Chameleon 3.2). The only module of the engine that imports torch."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.engine.explorer.ppo.settings import DIRECTIONS, Settings

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Experience:
    """Steps of finished episodes: states (n, k), actions (n, k) in 0..2, and each step's advantage and return (n,)."""

    states: Floats
    actions: NDArray[np.int64]
    advantages: Floats
    returns: Floats


class Agent:
    """States are knob indices scaled to [-1, 1], as (n, k) float32. The weights (see `Settings.shapes`) are copied."""

    def __init__(self, weights: list[Floats], settings: Settings) -> None:
        # Nets this small lose by threads, and one thread makes the sums reproducible. This holds for the process.
        torch.set_num_threads(1)
        self._settings = settings
        self._weights = [torch.from_numpy(array.copy()).requires_grad_() for array in weights]
        # One kernel for all weights: they are small, and calls are what an update is made of.
        self._adam = torch.optim.Adam(self._weights, lr=settings.rate, fused=True)

    @property
    def weights(self) -> list[Floats]:
        return [np.asarray(weight.detach().numpy(), dtype=np.float32) for weight in self._weights]

    def act(self, states: Floats, luck: Floats) -> NDArray[np.int64]:
        """Actions (n, k) drawn from the policy by `luck` (n, k), uniform in [0, 1). In numpy: a walk asks for a few dozen
        states at a time, and calls of torch take several times as long."""
        first, bias, policy, policy_bias = (weight.detach().numpy() for weight in self._weights[:4])
        logits = np.tanh(states @ first + bias) @ policy + policy_bias
        down, stay, up = np.moveaxis(logits.reshape(len(states), -1, DIRECTIONS), 2, 0)
        top = np.maximum(np.maximum(down, stay), up)
        down, stay, up = np.exp(down - top), np.exp(stay - top), np.exp(up - top)
        drawn = luck * (down + stay + up)
        actions: NDArray[np.int64] = (drawn >= down).astype(np.int64) + (drawn >= down + stay)
        return actions

    def values(self, states: Floats) -> Floats:
        """The critic's opinion on states (n, k), as (n,)."""
        with torch.inference_mode():
            _, value = self._forward(torch.from_numpy(states))
            return np.asarray(value.numpy(), dtype=np.float32)

    def learn(self, experience: Experience, orders: Iterable[NDArray[np.int64]]) -> None:
        """One epoch over all steps for each of `orders`, permutations of them, with the clipped surrogate loss."""
        states, actions = torch.from_numpy(experience.states), torch.from_numpy(experience.actions)
        advantages, returns = torch.from_numpy(experience.advantages), torch.from_numpy(experience.returns)
        with torch.inference_mode():
            before = self._chosen(torch.log_softmax(self._forward(states)[0], dim=2), actions)
        before = before.clone()
        size = self._settings.minibatch
        for order in orders:
            for rows in torch.split(torch.from_numpy(order), size):
                loss = self._loss(states[rows], actions[rows], advantages[rows], returns[rows], before[rows])
                gradients = torch.autograd.grad(loss, self._weights)
                for weight, gradient in zip(self._weights, gradients, strict=True):
                    weight.grad = gradient
                self._adam.step()

    def _forward(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (n, k, 3) and values (n,)."""
        first, bias, policy, policy_bias, value, value_bias = self._weights
        shared = torch.tanh(torch.addmm(bias, states, first))
        logits = torch.addmm(policy_bias, shared, policy)
        return logits.reshape(len(states), -1, DIRECTIONS), torch.addmm(value_bias, shared, value)[:, 0]

    def _chosen(self, logs: Tensor, actions: Tensor) -> Tensor:
        """Of the logarithms of all chances those of `actions`, a column a ratio: one a knob, or one of the whole action."""
        each = logs.gather(2, actions[:, :, None])[:, :, 0]
        return each if self._settings.ratio == "knob" else each.sum(dim=1, keepdim=True)

    def _loss(self, states: Tensor, actions: Tensor, advantages: Tensor, returns: Tensor, before: Tensor) -> Tensor:
        logits, values = self._forward(states)
        logs = torch.log_softmax(logits, dim=2)
        ratios = torch.exp(self._chosen(logs, actions) - before)
        clipped = torch.clamp(ratios, 1 - self._settings.clip, 1 + self._settings.clip)
        gain = torch.minimum(ratios * advantages[:, None], clipped * advantages[:, None]).sum(dim=1).mean()
        each = -(logs.exp() * logs).sum(dim=2)
        entropy = each.sum(dim=1).mean() if self._settings.spread == "action" else each.mean() / math.log(DIRECTIONS)
        error = torch.square(values - returns).mean()
        return -gain + self._settings.value * error - self._settings.entropy * entropy
