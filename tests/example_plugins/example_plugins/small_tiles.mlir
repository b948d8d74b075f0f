// Gives each linalg.matmul of an executable a lowering configuration.
module attributes { transform.with_named_sequence } {
  transform.named_sequence @small_tiles(%executable: !transform.any_op {transform.readonly}) {
    %products = transform.structured.match ops{["linalg.matmul"]} in %executable
      : (!transform.any_op) -> !transform.any_op
    %configuration = transform.param.constant #iree_codegen.compilation_info<
      lowering_config = #iree_cpu.lowering_config<
        distribution = [16, 64, 0], vector_common_parallel = [2, 16, 0], vector_reduction = [0, 0, 4]>,
      translation_info = <pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>
    > -> !transform.any_param
    transform.annotate %products "compilation_info" = %configuration : !transform.any_op, !transform.any_param
    transform.yield
  }
}
