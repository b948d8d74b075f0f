// 0, 1, 2, ... for twice as many as the argument has, padded. ONNX's Resize computes its sizes like that, through
// floats, and a convolution pads what it gives.
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %scale = arith.constant 2.0 : f32
  %zero = arith.constant 0.0 : f32
  %size = tensor.dim %x, %c0 : tensor<?xf32>
  %integer = arith.index_cast %size : index to i64
  %float = arith.sitofp %integer : i64 to f32
  %scaled = arith.mulf %float, %scale : f32
  %rounded = arith.fptosi %scaled : f32 to i64
  %twice = arith.index_cast %rounded : i64 to index
  %empty = tensor.empty(%twice) : tensor<?xf32>
  %counted = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%empty : tensor<?xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %position = arith.index_cast %i : index to i32
    %number = arith.sitofp %position : i32 to f32
    linalg.yield %number : f32
  } -> tensor<?xf32>
  %padded = tensor.pad %counted low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<?xf32> to tensor<?xf32>
  return %padded : tensor<?xf32>
}
