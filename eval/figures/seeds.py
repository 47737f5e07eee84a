"""Many seeds at once: equal models with stacked parameters, run and trained in one go."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel


class Seeds:
    """Models that differ in their numbers only; the leading dimension S counts them."""

    def __init__(self, models: Sequence[nn.Module]) -> None:
        stacked = [model.eval() for model in models]  # no dropout: it cannot be batched
        self.parameters, self._buffers = stack_module_state(stacked)

        def one(state: tuple[dict[str, Tensor], dict[str, Tensor]], *inputs: Tensor) -> Tensor:
            answer: Tensor = functional_call(models[0], state, inputs)
            return answer

        self._all = vmap(one)

    def __call__(self, *inputs: Tensor) -> Tensor:
        """Inputs (S, B, …): the first of S for the first model and so on. Answers (S, B, …)."""
        # The fused kernel would be run seed by seed; written out, all seeds share each product.
        with sdpa_kernel(SDPBackend.MATH):
            answers: Tensor = self._all((self.parameters, self._buffers), *inputs)
        return answers

    def double(self) -> None:
        """Go on in double precision, with the same numbers."""
        self.parameters = {name: value.double() for name, value in self.parameters.items()}

    def train(
        self,
        steps: int,
        losses: Callable[[int], Tensor],
        learning_rate: Callable[[int], float],
    ) -> None:
        """Adam on the losses (S,) of each step; a model's loss touches its own numbers only."""
        optimizer = torch.optim.Adam(self.parameters.values(), fused=True)
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step)
            optimizer.zero_grad()
            losses(step).sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
