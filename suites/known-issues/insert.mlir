// tensor.insert into a tensor of rank 2 or more writes as many elements as a row has, and one more.
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0 : index
  %value = arith.constant 99.0 : f32
  %r = tensor.insert %value into %a[%zero, %zero] : tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
