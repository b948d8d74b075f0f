// exp(x) * exp(y) -> exp(x + y)
pdl.pattern @one_exp : benefit(1) {
  %type = pdl.type
  %x = pdl.operand : %type
  %y = pdl.operand : %type
  %exp_x_op = pdl.operation "math.exp" (%x : !pdl.value) -> (%type : !pdl.type)
  %exp_x = pdl.result 0 of %exp_x_op
  %exp_y_op = pdl.operation "math.exp" (%y : !pdl.value) -> (%type : !pdl.type)
  %exp_y = pdl.result 0 of %exp_y_op
  %product = pdl.operation "arith.mulf" (%exp_x, %exp_y : !pdl.value, !pdl.value) -> (%type : !pdl.type)
  pdl.rewrite %product {
    %sum_op = pdl.operation "arith.addf" (%x, %y : !pdl.value, !pdl.value) -> (%type : !pdl.type)
    %sum = pdl.result 0 of %sum_op
    %exp = pdl.operation "math.exp" (%sum : !pdl.value) -> (%type : !pdl.type)
    pdl.replace %product with %exp
  }
}
