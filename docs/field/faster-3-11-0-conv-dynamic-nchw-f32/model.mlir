// A 3x3 convolution of images whose number and size are open.
func.func @main(%image: tensor<?x32x?x?xf32>, %filter: tensor<64x32x3x3xf32>) -> tensor<?x64x?x?xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %n = tensor.dim %image, %c0 : tensor<?x32x?x?xf32>
  %height = tensor.dim %image, %c2 : tensor<?x32x?x?xf32>
  %width = tensor.dim %image, %c3 : tensor<?x32x?x?xf32>
  %h = arith.subi %height, %c2 : index
  %w = arith.subi %width, %c2 : index
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%n, %h, %w) : tensor<?x64x?x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x64x?x?xf32>) -> tensor<?x64x?x?xf32>
  %result = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%image, %filter : tensor<?x32x?x?xf32>, tensor<64x32x3x3xf32>)
    outs(%init : tensor<?x64x?x?xf32>) -> tensor<?x64x?x?xf32>
  return %result : tensor<?x64x?x?xf32>
}
