// linalg.matmul -> a call of example_product_f32, which a plugin of the runtime brings.
// A matrix arrives in C with its offset, which is not zero where IREE packs several tensors into one buffer.
!matrix = memref<?x?xf32, strided<[?, 1], offset: ?>>

module attributes { transform.with_named_sequence } {
  // The dispatch: one workgroup, which hands the memory of its operands to the C function.
  stream.executable private @own_product_executable {
    stream.executable.export public @own_product workgroups() -> (index, index, index) {
      %one = arith.constant 1 : index
      stream.return %one, %one, %one : index, index, index
    }
    builtin.module {
      func.func private @example_product_f32(!matrix, !matrix, !matrix)
      func.func @own_product(%a: !stream.binding, %b: !stream.binding, %c: !stream.binding,
                             %m: index, %n: index, %k: index) {
        %zero = arith.constant 0 : index
        %left = stream.binding.subspan %a[%zero] : !stream.binding -> !matrix{%m, %k}
        %right = stream.binding.subspan %b[%zero] : !stream.binding -> !matrix{%k, %n}
        %result = stream.binding.subspan %c[%zero] : !stream.binding -> !matrix{%m, %n}
        func.call @example_product_f32(%left, %right, %result) : (!matrix, !matrix, !matrix) -> ()
        return
      }
    }
  }

  // What stands in the program instead of a product: c is added to, as linalg.matmul does.
  util.func private @call_own_product(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>)
      -> tensor<?x?xf32> {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %m = tensor.dim %a, %zero : tensor<?x?xf32>
    %k = tensor.dim %a, %one : tensor<?x?xf32>
    %n = tensor.dim %b, %one : tensor<?x?xf32>
    %product = flow.dispatch @own_product_executable::@own_product(%a, %b, %c, %m, %n, %k)
      : (tensor<?x?xf32>{%m, %k}, tensor<?x?xf32>{%k, %n}, tensor<?x?xf32>{%m, %n}, index, index, index)
      -> %c{%m, %n}
    util.return %product : tensor<?x?xf32>
  }

  // Products of f32 matrices, of any size.
  transform.named_sequence @is_product(%op: !transform.any_op {transform.readonly}) -> !transform.any_op {
    %inputs, %results = transform.iree.match.cast_compatible_dag_from_root %op {
    ^bb0(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>):
      %product = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%c : tensor<?x?xf32>)
        -> tensor<?x?xf32>
    } : (!transform.any_op) -> (!transform.any_value, !transform.any_value)
    transform.yield %op : !transform.any_op
  }

  transform.named_sequence @call(%op: !transform.any_op {transform.readonly}) {
    %operands = transform.get_operand %op[all] : (!transform.any_op) -> !transform.any_value
    %result = transform.get_result %op[0] : (!transform.any_op) -> !transform.any_value
    %program = transform.util.get_nearest_symbol_table %op : (!transform.any_op) -> !transform.any_op
    %executable = transform.util.import_symbol @own_product_executable into %program if undefined
      : (!transform.any_op) -> !transform.any_op
    %function = transform.util.import_symbol @call_own_product into %program if undefined
      : (!transform.any_op) -> !transform.any_op
    transform.util.cast_and_call %function(%operands) -> %result after %op {
      transform.type_conversion.tensor.cast_shape_dynamic_dims
    } : (!transform.any_op, !transform.any_value, !transform.any_value, !transform.any_op) -> !transform.any_op
    transform.yield
  }

  transform.named_sequence @__transform_main(%program: !transform.any_op) {
    %functions = transform.structured.match ops{["util.func"]} in %program : (!transform.any_op) -> !transform.any_op
    transform.foreach %functions : !transform.any_op {
    ^bb0(%function: !transform.any_op):
      transform.foreach_match in %function @is_product -> @call : (!transform.any_op) -> !transform.any_op
    }
    transform.apply_dce to %program : !transform.any_op  // the products that nothing uses any more
    transform.yield
  }
}
