"""`test_dynamo` of each operator: numerics, and what numerics can't see."""

import pytest
import torch
from filters import blur, sobel

from pytest_dynacheck import Args


class TestBlur:
    @pytest.mark.dynacheck(max_graphs=1, max_recompiles=0)
    def test_dynamo(self, dtype, torch_optimizer):
        image = torch.rand(2, 3, 8, 8, dtype=dtype)
        op = torch_optimizer(blur)
        for _ in range(2):
            torch.testing.assert_close(op(image, 3, 1.5), blur(image, 3, 1.5))

    def test_gradients(self, dtype, dynacheck):
        image = torch.rand(2, 3, 8, 8, dtype=dtype, requires_grad=True)
        dynacheck.check(blur, [Args(image, 3, 1.5), Args(image, 5, 1.5)], grad=True)


class TestSobel:
    @pytest.mark.dynacheck(max_graphs=1, max_recompiles=0)
    def test_dynamo(self, dtype, torch_optimizer):
        image = torch.rand(2, 3, 8, 8, dtype=dtype)
        op = torch_optimizer(sobel)
        for _ in range(2):
            torch.testing.assert_close(op(image), sobel(image))
