// A matrix product, and two products of exponentials for the plugins to find.
func.func @main(%a: tensor<10x20xf32>, %b: tensor<20x30xf32>, %shift: tensor<10x30xf32>) -> tensor<10x30xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<10x30xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<10x30xf32>) -> tensor<10x30xf32>
  %product = linalg.matmul ins(%a, %b : tensor<10x20xf32>, tensor<20x30xf32>) outs(%start : tensor<10x30xf32>)
    -> tensor<10x30xf32>
  %result = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%product, %shift : tensor<10x30xf32>, tensor<10x30xf32>) outs(%empty : tensor<10x30xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %exp_x = math.exp %x : f32
    %exp_y = math.exp %y : f32
    %both = arith.mulf %exp_x, %exp_y : f32
    %square = arith.mulf %exp_y, %exp_y : f32
    %sum = arith.addf %both, %square : f32
    linalg.yield %sum : f32
  } -> tensor<10x30xf32>
  return %result : tensor<10x30xf32>
}
