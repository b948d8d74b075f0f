// Gives each linalg.matmul a lowering configuration; ROWS, COLUMNS and TERMS are filled in from the plugin's options.
module attributes { transform.with_named_sequence } {
  transform.named_sequence @is_product(%op: !transform.any_op {transform.readonly})
      -> (!transform.any_op, !transform.any_param) {
    transform.match.operation_name %op ["linalg.matmul"] : !transform.any_op
    %configuration = transform.param.constant #iree_codegen.compilation_info<
      lowering_config = #iree_cpu.lowering_config<
        distribution = [16, 64, 0], vector_common_parallel = [ROWS, COLUMNS, 0], vector_reduction = [0, 0, TERMS]>,
      translation_info = <pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>
    > -> !transform.any_param
    transform.yield %op, %configuration : !transform.any_op, !transform.any_param
  }
  transform.named_sequence @configure(
      %op: !transform.any_op {transform.readonly}, %configuration: !transform.any_param {transform.readonly}) {
    transform.annotate %op "compilation_info" = %configuration : !transform.any_op, !transform.any_param
    transform.yield
  }
  transform.named_sequence @__kernel_config(%executable: !transform.any_op {transform.consumed}) -> !transform.any_op
      attributes { iree_codegen.tuning_spec_entrypoint } {
    %configured = transform.foreach_match in %executable @is_product -> @configure
      : (!transform.any_op) -> !transform.any_op
    transform.yield %configured : !transform.any_op
  }
}
