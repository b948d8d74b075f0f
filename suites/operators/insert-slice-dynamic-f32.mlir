// Keys of new words set into a cache whose length is open, at its end (iree#15195).
func.func @main(%new: tensor<?x32x128xf32>, %cache: tensor<?x32x128xf32>) -> tensor<?x32x128xf32> {
  %c0 = arith.constant 0 : index
  %words = tensor.dim %new, %c0 : tensor<?x32x128xf32>
  %length = tensor.dim %cache, %c0 : tensor<?x32x128xf32>
  %at = arith.subi %length, %words : index
  %result = tensor.insert_slice %new into %cache[%at, 0, 0] [%words, 32, 128] [1, 1, 1]
    : tensor<?x32x128xf32> into tensor<?x32x128xf32>
  return %result : tensor<?x32x128xf32>
}
