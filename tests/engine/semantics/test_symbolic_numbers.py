"""Ints and floats that became symbols are Python's ints and floats still: types, values, errors."""

import math

import dynacheck
import pytest
import torch

EXPRESSIONS = """
n+True; True+n; n-True; True&n; n|True; n^True; True^n; n==True; True==n; n<True; n!=False; n*True; n//True; n%True
divmod(n,True); n**True; n<<True; n>>True; (n>2)+n; (n>2)&True; (n>2)|(n<5); (n>2)^(n<5); (n>2)==True; -(n>2); ~(n>2)
(n>2)*1.5; (n>2)<n; n in [True,2]; True in [n]; min(n,True); max(n>2,0); [10,11][n>2]; sum([n,True]); abs(n>2); round(n,True)
n and True; not n; int(n>2); float(n>2); str(n>2); (n>2) is True; isinstance(n>2,bool); type(n>2); hash(n>2); {True:1}.get(n)
n==1.0; n+0.5; n/True; n&3; n|4; n^5; ~n; n<<1; n>>1; range(n)[1]; 'a'*n; [0]*n; divmod(n,3); pow(n,2); pow(n,2,5)
n.bit_length(); n.real; format(n,'03d'); f'{n:>5}'; '%d'%n; (n,)<(3,); n is n; float(n); complex(n); n//2; -n//2; n%-3; n/4
bool(n-3); r+n; r//1; r%2; int(r); round(r); r**2; divmod(r,2); r==True; r+True; -r; abs(-r); min(r,n); r<n
float(r).is_integer(); math.floor(r); math.ceil(r); math.sqrt(r); r and 1; str(r); n**-1; n**0.5; 2**n; (-2)**n; 0**n; r**n
r*0; 0*r; -r*0; r-r; r//49; (r//49,str(r),0*r); (r//49,r%1.0,r+r) if r > 0 and str(r) else r; float(n)*0; (-n)*0.0
torch.set_grad_enabled(n > 2).mode; x*(-2)**n; (-2.0)**x; (-2)**x; 0**x; (n > 2) * x
"""


def shown(fn, *args):
    try:
        value = fn(torch.ones(2), *args)[1]
    except Exception as error:
        if isinstance(error, dynacheck.errors.DynacheckError):
            raise
        return type(error), str(error)
    finally:
        torch.set_grad_enabled(True)
    return type(value), repr(value)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize(
    "expression", [e.strip() for e in EXPRESSIONS.replace("\n", ";").split(";") if e.strip()]
)
def test_expression(expression, dynamic):
    scope = {"torch": torch, "math": math}
    exec(f"def program(x, n, r):\n    return x + 1, {expression}\n", scope)
    dynacheck.reset()
    compiled = dynacheck.compile(scope["program"], backend="eager", dynamic=dynamic)
    for numbers in ((3, 1.5), (4, 2.5), (7, 0.25), (2, 4.0)):
        assert shown(compiled, *numbers) == shown(scope["program"], *numbers)
