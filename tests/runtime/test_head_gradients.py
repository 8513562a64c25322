"""The derivatives of activations in NumPy, beside PyTorch's own."""

import numpy as np
import pytest
import torch
from transformers.activations import ACT2FN

from bert_tf.runtime.head_gradients import SLOPES
from bert_tf.runtime.numpy_ops import ACTIVATIONS


@pytest.mark.parametrize("name", sorted(set(ACTIVATIONS) - {"tanh"}))
def test_a_slope_is_that_of_torch(name):
    x = np.linspace(-12, 12, 401, dtype=np.float32)
    tensor = torch.tensor(x, requires_grad=True)
    ACT2FN[name](tensor).sum().backward()
    np.testing.assert_allclose(SLOPES[name](x), tensor.grad.numpy(), atol=2e-6)
