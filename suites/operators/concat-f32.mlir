// Three tensors side by side along the innermost axis.
func.func @main(
    %a: tensor<1024x256xf32>, %b: tensor<1024x192xf32>, %c: tensor<1024x64xf32>
) -> tensor<1024x512xf32> {
  %result = tensor.concat dim(1) %a, %b, %c
    : (tensor<1024x256xf32>, tensor<1024x192xf32>, tensor<1024x64xf32>) -> tensor<1024x512xf32>
  return %result : tensor<1024x512xf32>
}
