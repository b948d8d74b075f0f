#same = affine_map<(n, y, x, c) -> (n, y, x, c)>
module {
  func.func @main(%input: tensor<1x22x27x128xf32>) -> tensor<1x20x25x128xf32> {
    %zero = arith.constant 0.0 : f32
    %filter = arith.constant dense_resource<filter> : tensor<3x3x128x128xf32>
    %bias = arith.constant dense_resource<bias> : tensor<128xf32>
    %empty = tensor.empty() : tensor<1x20x25x128xf32>
    %biased = linalg.broadcast ins(%bias : tensor<128xf32>) outs(%empty : tensor<1x20x25x128xf32>) dimensions = [0, 1, 2]
    %convolved = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
        ins(%input, %filter : tensor<1x22x27x128xf32>, tensor<3x3x128x128xf32>) outs(%biased : tensor<1x20x25x128xf32>) -> tensor<1x20x25x128xf32>
    %result = linalg.generic {
      indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel"]
    } ins(%convolved : tensor<1x20x25x128xf32>) outs(%empty : tensor<1x20x25x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      %rectified = arith.maxnumf %in, %zero : f32
      linalg.yield %rectified : f32
    } -> tensor<1x20x25x128xf32>
    return %result : tensor<1x20x25x128xf32>
  }
}
{-#
  dialect_resources: {
    builtin: {
      filter: "0x04000000cc99a6bc5eb68e3ddd4237bc3907613d84b2c8bc7b12813aedca1e3cff8d48bd96c513bbaae4c23cfa48c0bc5f13173d86b1de3c72dfbd3c9a3ebf3c3b255ebc16aa903d7112bc3be183043cf262093b5c7e9b3c9921583dbcda29bc4cf067bc5731c5bbc3dccd3c05e29f3c10040d3d9b15c93c33bb4e3be843b73c28d375bc8421063df19232bb43bcca3c458029bc68ee0cbdeda527bdef6d1ebd10131a3d3f42533de65a613b07fac0bbd1ccc63b5bfc7a3c7cb152bd90c239bdd23a373d47d26e3d296b80bd523d833a355bc73b8145033d6405a2bae342c3bc5851dfbcf4499cbd8e87643c4fb852bcacbfa43cfb585fbde8de6e3cb6e86bbcfb5f3bbc25a3f8bc0df830bce6471cbc7cb680bcbf2f4e3cf379023df76933bdc5da2b3c63baa83df52f15bd1e809ebbc78031bdaed83e3db073ff3cc928f4bcce2a4dbc3993423d26c037bdf64e5a3b4d948e3ce766543c5d9059bcf7de083d7b29ce3c729afeba6ab9acbc87be01bdc4d3ff3b160d6c3a37c151bbaecb2bbd6dbf0e3cb5d30fbd59f02d3d9a54dd3cfe8739bc7d501c3b4154e83c634047bd542fcd3c1ccf703b0c7daf3c7ca9c93cf4c38f3c8059d73cb8dfe33c7122e63c1de2e63bf16c27bc72eac33c989bf4bb752f49bcb49c54bcf93402bcd6a0853dab45c9bb459ed33b99ebacbb4b4871bba5f60c3c629e3abc5b38113cfd289dbc811b08bd+589824",
      bias: "0x0400000095e3643da60a8ebd47b9aebc1e9324bd4558f63ce5bc75bb489a433b4fc1d1baf5f217bcd7bc763def381f3d86168bbd27a91d3df53832bd483b613da74b44bd938d82bd85cf8bbd9df896bd1893b13cf16586bcb0da46bd6396813d475245397a6d5abd0b0ab13ddde2b8bc44581f3b971c69bd9f908abc37a59cbdf32b273c32de2fbb29b939bd57208aba20cc7ebdb057883bfe6f4abc2b9d863d73843c3d16693bbc213fc7ba86d7c039077506bcb1e345ba0d617b3d3f28553d26400b3d504d4e3cfc83aa3d03e9533da9649cbc8a928fbcd3a07b3d77e992bcd7ebc3bd235d523de0c48abd8a28abbd527958bdc06587bd3b6f1e3db2a8b0bdc84befbbdf23a63c61fd90bdab3f373d2002933debc6623c1789353df37e7fbc2f7d4a3d38a124bdc5918fbdae5dc63bb88bd3bdc0733c3dd761adbc569297bdf83623bdab4c093d1ef99b3c9d71833d5743b8bde087e53caabcf1bc3bef9a3d0c6c033d60aa2cbddfa70abdb5dcc03cffe7793b4177913d8eff1ebd3d34d53bd87de3bb78a2193d93d8a53d68b5c53cab5b443da82fabbc2a48e13c154973bcf36a47bd6509b63bde439f3b3b8b80bda201d93c0389653de712a6bbca3efb3c2a114d3d5721ac3d3a773d3ddb644abd6e3b2a3c7ac279bd405b923b828957bd0aab0dbd3f00cbbd9034e83da34ad6bb44f7c4bccb717cbd33771b3df75ec3bc8d1ffebc"
    }
  }
#-}
