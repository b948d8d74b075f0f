// Eight products, as of an attention's heads.
func.func @main(%left: tensor<8x256x128xf32>, %right: tensor<8x128x256xf32>) -> tensor<8x256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x256x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x256x256xf32>) -> tensor<8x256x256xf32>
  %result = linalg.batch_matmul
    ins(%left, %right : tensor<8x256x128xf32>, tensor<8x128x256xf32>)
    outs(%init : tensor<8x256x256xf32>) -> tensor<8x256x256xf32>
  return %result : tensor<8x256x256xf32>
}
