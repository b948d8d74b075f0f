// Three tensors side by side along the innermost axis.
func.func @main(
    %a: tensor<4096x256xf32>, %b: tensor<4096x192xf32>, %c: tensor<4096x64xf32>
) -> tensor<4096x512xf32> {
  %result = tensor.concat dim(1) %a, %b, %c
    : (tensor<4096x256xf32>, tensor<4096x192xf32>, tensor<4096x64xf32>) -> tensor<4096x512xf32>
  return %result : tensor<4096x512xf32>
}
