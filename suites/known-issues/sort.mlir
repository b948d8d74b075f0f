// A stable sort swaps what is equal: the second result should be 1, 3, 0, 2, 4.
func.func @main(%keys: tensor<5xi32>, %places: tensor<5xi32>) -> (tensor<5xi32>, tensor<5xi32>) {
  %0:2 = "stablehlo.sort"(%keys, %places) ({
  ^bb0(%x: tensor<i32>, %y: tensor<i32>, %p: tensor<i32>, %q: tensor<i32>):
    %c = stablehlo.compare LT, %x, %y : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true} : (tensor<5xi32>, tensor<5xi32>) -> (tensor<5xi32>, tensor<5xi32>)
  return %0#0, %0#1 : tensor<5xi32>, tensor<5xi32>
}
