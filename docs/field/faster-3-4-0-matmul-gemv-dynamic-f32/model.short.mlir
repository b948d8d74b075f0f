module {
  func.func @main(%left: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
    %zero = arith.constant 0.0 : f32
    %right = arith.constant dense_resource<right> : tensor<1024x1024xf32>
    %axis_m = arith.constant 0 : index
    %m = tensor.dim %left, %axis_m : tensor<?x1024xf32>
    %empty = tensor.empty(%m) : tensor<?x1024xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x1024xf32>) -> tensor<?x1024xf32>
    %product = linalg.matmul ins(%left, %right : tensor<?x1024xf32>, tensor<1024x1024xf32>) outs(%init : tensor<?x1024xf32>) -> tensor<?x1024xf32>
    return %product : tensor<?x1024xf32>
  }
}
{-#
  dialect_resources: {
    builtin: {
      right: "0x040000004453dd3f90d7b6bf248d833fa4e7f03fb8e0993d3c9dd53eb5fae8bfdc13e33fe28de93e089d0cbf1d6e803fdf8cf5be21a071be9cdd52bf48bd0b3f60ddf73ef873173ff10d213e7642ea3da0d3debcc917603f05f3373ff226c03f6b906c3fd9a471bf445db13ef7a275be0decb73fdac10fbe881786bec0fdf23d15bb833e1256093f1334ffbe4fae39bfd22190bf1bc5a23e58daa7bf14e9debe589a623d2a033c3f75e68fbd8eddaa3ee13d3b3f170282bfd0820e3e269d0ec0e97d3bc02f0cb33fb02b5fbeb9077abfb5111fbe2cf8a1bf8257e8bfd162e2be55310b3f56306ebe900ebd3d69f3613fb29bcdbe1c83dc3e245c2b3f950f233e48b4f4bebff53d3ffb504ebfd39e823fbfe5513f06a9a63ffc0bbd3f0375e7bfcfff643fae532f3dccb1cebf8f4b123faa5608c0290e10bf7b16fd3d5350a43d9e58c33ed5ee29bf2e5893bfda1d81bf60284abee16472bf96aa37bfde4d24be20d7e7be97accbbfc99740bff6b83d3f90093d3f615cf0bef151b83f0aea8a3fb50919be581ad1beb4bd143fc0c9a13fd910073e29e96a3e9e33523f0c1d89bf1fa2abbf95267fbe6c46783ffd59e93f6739adbee125dc3eac68253f651148be40698fbe52d5cbbfe98e2f3fd1ad71bfbd6eafbf6c795d3fb60c00bfda110ebfeaf180bfa39da0bd7474603fb77fc6bbd190b03fcca6df3faccda7be149f41bf580a2bbf+4194304"
    }
  }
#-}
