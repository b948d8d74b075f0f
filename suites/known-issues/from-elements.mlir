// tensor.from_elements of rank 3: each element is also written over the one after it.
func.func @main(%a: tensor<2xf32>) -> tensor<3x1x1xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %x = tensor.extract %a[%zero] : tensor<2xf32>
  %y = tensor.extract %a[%one] : tensor<2xf32>
  %r = tensor.from_elements %x, %y, %x : tensor<3x1x1xf32>
  return %r : tensor<3x1x1xf32>
}
