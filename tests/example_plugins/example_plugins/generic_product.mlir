// linalg.matmul -> linalg.generic
module attributes { transform.with_named_sequence } {
  transform.named_sequence @__transform_main(%program: !transform.any_op {transform.readonly}) {
    %products = transform.structured.match ops{["linalg.matmul"]} in %program
      : (!transform.any_op) -> !transform.any_op
    %generics = transform.structured.generalize %products : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
