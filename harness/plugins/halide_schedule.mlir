// The transform library of harness.plugins.halide_schedule, and below it the parts of its schedule.
// ----- library
!op = !transform.any_op
module attributes {transform.with_named_sequence} {
  transform.named_sequence @schedule(%module: !op) {
    %f = transform.structured.match ops{["func.func"]} in %module : (!op) -> !op
$schedule    transform.yield
  }

  transform.named_sequence @is_convolution(%op: !op {transform.readonly}) -> !op {
    transform.match.operation_name %op ["linalg.generic"] : !op
    %same = transform.match.structured %op : (!op) -> !op {
    ^bb0(%one: !op):
      %rank = transform.match.structured.rank %one : (!op) -> !transform.param<i64>
      %seven = transform.param.constant 7 : i64 -> !transform.param<i64>
      transform.match.param.cmpi eq %rank, %seven : !transform.param<i64>
      "transform.match.structured.dim"(%one) <{raw_dim_list = array<i64: 0, 1, 2, 3>, parallel}> : (!op) -> ()
      "transform.match.structured.dim"(%one) <{raw_dim_list = array<i64: 4, 5, 6>, reduction}> : (!op) -> ()
      transform.match.structured.yield %one : !op
    }
    transform.yield %op : !op
  }

  transform.named_sequence @lower_by_schedule(%op: !op {transform.readonly}) {
    transform.annotate %op "harness.convolution" : !op
    %f = "transform.get_parent_op"(%op) <{op_name = "func.func"}> : (!op) -> !op
    %info = transform.param.constant #iree_codegen.translation_info<
      pipeline = #iree_codegen.transform_dialect_codegen codegen_spec = @schedule> -> !transform.any_param
    transform.annotate %f "translation_info" = %info : !op, !transform.any_param
    transform.yield
  }

  transform.named_sequence @__kernel_config(%executable: !op {transform.consumed}) -> !op {
    %same = transform.foreach_match in %executable @is_convolution -> @lower_by_schedule : (!op) -> !op
    transform.yield %same : !op
  }
}
// ----- tile
// Where the tutorial tiles with forall, so does this; its loops over output channels, images and rows are workgroups.
    %conv = transform.structured.match attributes {harness.convolution} in %f : (!op) -> !op
    %relu = transform.get_consumers_of_result %conv[0] : (!op) -> !op
    %init = transform.get_producer_of_operand %conv[2] : (!op) -> !op
    %relu0, %outer = transform.structured.tile_using_forall %relu tile_sizes [1, 1, 0, $channels]
      (mapping = [#iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>,
                  #iree_codegen.workgroup_mapping<z>]) : (!op) -> (!op, !op)
    %relu1, %xo = transform.structured.tile_using_forall %relu0 tile_sizes [0, 0, $columns, 0] : (!op) -> (!op, !op)
    %conv0, %outer1 = transform.structured.fuse_into_containing_op %conv into %outer : (!op, !op) -> (!op, !op)
    %conv1, %xo1 = transform.structured.fuse_into_containing_op %conv0 into %xo : (!op, !op) -> (!op, !op)
    %init0, %outer2 = transform.structured.fuse_into_containing_op %init into %outer1 : (!op, !op) -> (!op, !op)
    %init1, %xo2 = transform.structured.fuse_into_containing_op %init0 into %xo1 : (!op, !op) -> (!op, !op)
    %conv2, %r0, %r1, %r2 = transform.structured.tile_using_for %conv1 tile_sizes [0, 0, 0, 0, 1, 1, 1]
      : (!op) -> (!op, !op, !op, !op)
// ----- one vector
    %init2, %init_x, %init_c = transform.structured.tile_using_for %init1 tile_sizes [0, 0, 1, $lanes]
      : (!op) -> (!op, !op, !op)
    %conv3, %conv_x, %conv_c = transform.structured.tile_using_for %conv2 tile_sizes [0, 0, 1, $lanes]
      : (!op) -> (!op, !op, !op)
    %relu2, %relu_x, %relu_c = transform.structured.tile_using_for %relu1 tile_sizes [0, 0, 1, $lanes]
      : (!op) -> (!op, !op, !op)
// ----- mark
// Bufferization makes all handles invalid; the loops keep their attributes.
    transform.annotate %${op}_x "harness.columns" : !op
    transform.annotate %${op}_c "harness.vectors" : !op
// ----- unroll
    "transform.loop.unroll"(%${op}_c) <{factor = $vectors : i64}> : (!op) -> ()
    "transform.loop.unroll"(%${op}_x) <{factor = $columns : i64}> : (!op) -> ()
// ----- simplify
    transform.apply_patterns to %f {
      transform.apply_patterns.canonicalization
      transform.apply_patterns.linalg.tiling_canonicalization
    } : !op
    transform.apply_cse to %f : !op
    %loops = transform.structured.match interface{LoopLikeInterface} in %f : (!op) -> !op
    transform.apply_licm to %loops : !op
// ----- vectorize
    transform.apply_patterns to %f { transform.apply_patterns.linalg.fold_unit_extent_dims_via_slices } : !op
    %v = transform.structured.vectorize_children_and_apply_patterns %f : (!op) -> !op
    transform.apply_patterns to %v {
      transform.apply_patterns.canonicalization
      transform.apply_patterns.tensor.fold_tensor_subset_ops_into_vector_transfers
    } : !op
    transform.apply_cse to %v : !op
    %vector_loops = transform.structured.match interface{LoopLikeInterface} in %v : (!op) -> !op
    transform.apply_licm to %vector_loops : !op
// ----- hoist
    transform.loop.hoist_loop_invariant_subsets %vector_loops : !op
// ----- bufferize
    %t = transform.structured.match ops{["func.func"]} in %module : (!op) -> !op
    transform.iree.eliminate_empty_tensors %t : (!op) -> ()
    %b = transform.iree.bufferize %t : (!op) -> !op
// ----- unroll marked
    %late_c = transform.structured.match ops{["scf.for"]} attributes {harness.vectors} in %b : (!op) -> !op
    "transform.loop.unroll"(%late_c) <{factor = $vectors : i64}> : (!op) -> ()
    %late_x = transform.structured.match ops{["scf.for"]} attributes {harness.columns} in %b : (!op) -> !op
    "transform.loop.unroll"(%late_x) <{factor = $columns : i64}> : (!op) -> ()
// ----- lower
// The second canonicalization removes copies of a buffer onto itself, once CSE has seen that it is one.
    transform.apply_patterns to %b { transform.apply_patterns.canonicalization } : !op
    transform.apply_cse to %b : !op
    transform.apply_patterns to %b { transform.apply_patterns.canonicalization } : !op
    transform.apply_patterns to %b {
      transform.apply_patterns.vector.lower_contraction lowering_strategy = parallelarith
      transform.apply_patterns.vector.lower_transfer max_transfer_rank = 1
      transform.apply_patterns.vector.lower_transpose lowering_strategy = eltwise
      transform.apply_patterns.vector.lower_shape_cast
    } : !op
    transform.apply_patterns to %b {
      transform.apply_patterns.vector.transfer_to_scf full_unroll = true
      transform.apply_patterns.memref.alloc_to_alloca
    } : !op
// ----- unroll reads
// One input channel of a tile's columns is read by a loop, which LLVM does not unroll here: half as much time again.
    %reads = transform.structured.match ops{["scf.for"]} filter_result_type = vector<${columns}xf32> in %b
      : (!op) -> !op
    "transform.loop.unroll"(%reads) <{factor = $columns : i64}> : (!op) -> ()
// ----- finish
    transform.bufferization.buffer_loop_hoisting %b : !op
    transform.apply_patterns to %b {
      transform.apply_patterns.memref.fold_memref_alias_ops
      transform.apply_patterns.canonicalization
    } : !op
    transform.apply_cse to %b : !op
    %done = transform.param.constant
      #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline> -> !transform.any_param
    transform.annotate %b "translation_info" = %done : !op, !transform.any_param
