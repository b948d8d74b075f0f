

module {
  func.func @main(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
    %zero = arith.constant 0.0 : f32
    %weight_query = arith.constant dense_resource<weight_query> : tensor<256x256xf32>
    %weight_key = arith.constant dense_resource<weight_key> : tensor<256x256xf32>
    %weight_value = arith.constant dense_resource<weight_value> : tensor<256x256xf32>
    %weight_out = arith.constant dense_resource<weight_out> : tensor<256x256xf32>
    %weight_up = arith.constant dense_resource<weight_up> : tensor<256x1024xf32>
    %weight_down = arith.constant dense_resource<weight_down> : tensor<1024x256xf32>
    %norm0 = arith.constant dense_resource<norm0> : tensor<256xf32>
    %shift0 = arith.constant dense_resource<shift0> : tensor<256xf32>
    %norm1 = arith.constant dense_resource<norm1> : tensor<256xf32>
    %shift1 = arith.constant dense_resource<shift1> : tensor<256xf32>
    %before_count = arith.constant 256.0 : f32
    %before_epsilon = arith.constant 1.0e-5 : f32
    %before_sum_to_empty = tensor.empty() : tensor<256xf32>
    %before_sum_to = linalg.fill ins(%zero : f32) outs(%before_sum_to_empty : tensor<256xf32>) -> tensor<256xf32>
    %before_sum = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q)>],
      iterator_types = ["parallel", "reduction"]
    } ins(%x : tensor<256x256xf32>) outs(%before_sum_to : tensor<256xf32>) {
    ^bb0(%in0: f32, %out: f32):
      %r = arith.addf %out, %in0 : f32
      linalg.yield %r : f32
    } -> tensor<256xf32>
    %before_centred_to = tensor.empty() : tensor<256x256xf32>
    %before_centred = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%x, %before_sum : tensor<256x256xf32>, tensor<256xf32>) outs(%before_centred_to : tensor<256x256xf32>) {
    ^bb0(%in0: f32, %in1: f32, %out: f32):
      %mean = arith.divf %in1, %before_count : f32
      %r = arith.subf %in0, %mean : f32
      linalg.yield %r : f32
    } -> tensor<256x256xf32>
    %before_squares_to_empty = tensor.empty() : tensor<256xf32>
    %before_squares_to = linalg.fill ins(%zero : f32) outs(%before_squares_to_empty : tensor<256xf32>) -> tensor<256xf32>
    %before_squares = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q)>],
      iterator_types = ["parallel", "reduction"]
    } ins(%before_centred : tensor<256x256xf32>) outs(%before_squares_to : tensor<256xf32>) {
    ^bb0(%in0: f32, %out: f32):
      %square = arith.mulf %in0, %in0 : f32
      %r = arith.addf %out, %square : f32
      linalg.yield %r : f32
    } -> tensor<256xf32>
    %before_to = tensor.empty() : tensor<256x256xf32>
    %before = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q)>, affine_map<(q, d) -> (d)>, affine_map<(q, d) -> (d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%before_centred, %before_squares, %norm0, %shift0 : tensor<256x256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>) outs(%before_to : tensor<256x256xf32>) {
    ^bb0(%in0: f32, %in1: f32, %in2: f32, %in3: f32, %out: f32):
      %mean = arith.divf %in1, %before_count : f32
      %above = arith.addf %mean, %before_epsilon : f32
      %inverse = math.rsqrt %above : f32
      %scaled = arith.mulf %in0, %inverse : f32
      %r0 = arith.mulf %scaled, %in2 : f32
      %r = arith.addf %r0, %in3 : f32
      linalg.yield %r : f32
    } -> tensor<256x256xf32>
    %query_flat_start_empty = tensor.empty() : tensor<256x256xf32>
    %query_flat_start = linalg.fill ins(%zero : f32) outs(%query_flat_start_empty : tensor<256x256xf32>) -> tensor<256x256xf32>
    %query_flat = linalg.matmul ins(%before, %weight_query : tensor<256x256xf32>, tensor<256x256xf32>) outs(%query_flat_start : tensor<256x256xf32>) -> tensor<256x256xf32>
    %query_split = tensor.expand_shape %query_flat [[0], [1, 2]] output_shape [256, 4, 64] : tensor<256x256xf32> into tensor<256x4x64xf32>
    %query_to = tensor.empty() : tensor<4x256x64xf32>
    %query = linalg.transpose ins(%query_split : tensor<256x4x64xf32>) outs(%query_to : tensor<4x256x64xf32>) permutation = [1, 0, 2]
    %key_flat_start_empty = tensor.empty() : tensor<256x256xf32>
    %key_flat_start = linalg.fill ins(%zero : f32) outs(%key_flat_start_empty : tensor<256x256xf32>) -> tensor<256x256xf32>
    %key_flat = linalg.matmul ins(%before, %weight_key : tensor<256x256xf32>, tensor<256x256xf32>) outs(%key_flat_start : tensor<256x256xf32>) -> tensor<256x256xf32>
    %key_split = tensor.expand_shape %key_flat [[0], [1, 2]] output_shape [256, 4, 64] : tensor<256x256xf32> into tensor<256x4x64xf32>
    %key_to = tensor.empty() : tensor<4x256x64xf32>
    %key = linalg.transpose ins(%key_split : tensor<256x4x64xf32>) outs(%key_to : tensor<4x256x64xf32>) permutation = [1, 0, 2]
    %value_flat_start_empty = tensor.empty() : tensor<256x256xf32>
    %value_flat_start = linalg.fill ins(%zero : f32) outs(%value_flat_start_empty : tensor<256x256xf32>) -> tensor<256x256xf32>
    %value_flat = linalg.matmul ins(%before, %weight_value : tensor<256x256xf32>, tensor<256x256xf32>) outs(%value_flat_start : tensor<256x256xf32>) -> tensor<256x256xf32>
    %value_split = tensor.expand_shape %value_flat [[0], [1, 2]] output_shape [256, 4, 64] : tensor<256x256xf32> into tensor<256x4x64xf32>
    %value_to = tensor.empty() : tensor<4x256x64xf32>
    %value = linalg.transpose ins(%value_split : tensor<256x4x64xf32>) outs(%value_to : tensor<4x256x64xf32>) permutation = [1, 0, 2]
    %attended_scale = arith.constant 0.125 : f32
    %attended_earlier = arith.constant 0 : index
    %attended_seen = arith.constant 0.0 : f32
    %attended_hidden = arith.constant 0xFF800000 : f32
    %attended_mask_to = tensor.empty() : tensor<4x256x256xf32>
    %attended_mask = linalg.generic {
      indexing_maps = [affine_map<(h, q, k) -> (h, q, k)>],
      iterator_types = ["parallel", "parallel", "parallel"]
    } outs(%attended_mask_to : tensor<4x256x256xf32>) {
    ^bb0(%out: f32):
      %row = linalg.index 1 : index
      %at = linalg.index 2 : index
      %last = arith.addi %row, %attended_earlier : index
      %sees = arith.cmpi sle, %at, %last : index
      %r = arith.select %sees, %attended_seen, %attended_hidden : f32
      linalg.yield %r : f32
    } -> tensor<4x256x256xf32>
    %attended_to = tensor.empty() : tensor<4x256x64xf32>
    %attended = "iree_linalg_ext.attention"(%query, %key, %value, %attended_scale, %attended_mask, %attended_to) <{
      indexing_maps = [affine_map<(h, q, e, d, k) -> (h, q, d)>, affine_map<(h, q, e, d, k) -> (h, k, d)>, affine_map<(h, q, e, d, k) -> (h, k, e)>, affine_map<(h, q, e, d, k) -> ()>, affine_map<(h, q, e, d, k) -> (h, q, k)>, affine_map<(h, q, e, d, k) -> (h, q, e)>],
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>
    }> ({
    ^bb0(%score: f32):
      "iree_linalg_ext.yield"(%score) : (f32) -> ()
    }) : (tensor<4x256x64xf32>, tensor<4x256x64xf32>, tensor<4x256x64xf32>, f32, tensor<4x256x256xf32>, tensor<4x256x64xf32>) -> tensor<4x256x64xf32>
    %joined_to = tensor.empty() : tensor<256x4x64xf32>
    %joined = linalg.transpose ins(%attended : tensor<4x256x64xf32>) outs(%joined_to : tensor<256x4x64xf32>) permutation = [1, 0, 2]
    %context = tensor.collapse_shape %joined [[0], [1, 2]] : tensor<256x4x64xf32> into tensor<256x256xf32>
    %projected_start_empty = tensor.empty() : tensor<256x256xf32>
    %projected_start = linalg.fill ins(%zero : f32) outs(%projected_start_empty : tensor<256x256xf32>) -> tensor<256x256xf32>
    %projected = linalg.matmul ins(%context, %weight_out : tensor<256x256xf32>, tensor<256x256xf32>) outs(%projected_start : tensor<256x256xf32>) -> tensor<256x256xf32>
    %y_to = tensor.empty() : tensor<256x256xf32>
    %y = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%x, %projected : tensor<256x256xf32>, tensor<256x256xf32>) outs(%y_to : tensor<256x256xf32>) {
    ^bb0(%in0: f32, %in1: f32, %out: f32):
      %r = arith.addf %in0, %in1 : f32
      linalg.yield %r : f32
    } -> tensor<256x256xf32>
    %between_count = arith.constant 256.0 : f32
    %between_epsilon = arith.constant 1.0e-5 : f32
    %between_sum_to_empty = tensor.empty() : tensor<256xf32>
    %between_sum_to = linalg.fill ins(%zero : f32) outs(%between_sum_to_empty : tensor<256xf32>) -> tensor<256xf32>
    %between_sum = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q)>],
      iterator_types = ["parallel", "reduction"]
    } ins(%y : tensor<256x256xf32>) outs(%between_sum_to : tensor<256xf32>) {
    ^bb0(%in0: f32, %out: f32):
      %r = arith.addf %out, %in0 : f32
      linalg.yield %r : f32
    } -> tensor<256xf32>
    %between_centred_to = tensor.empty() : tensor<256x256xf32>
    %between_centred = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%y, %between_sum : tensor<256x256xf32>, tensor<256xf32>) outs(%between_centred_to : tensor<256x256xf32>) {
    ^bb0(%in0: f32, %in1: f32, %out: f32):
      %mean = arith.divf %in1, %between_count : f32
      %r = arith.subf %in0, %mean : f32
      linalg.yield %r : f32
    } -> tensor<256x256xf32>
    %between_squares_to_empty = tensor.empty() : tensor<256xf32>
    %between_squares_to = linalg.fill ins(%zero : f32) outs(%between_squares_to_empty : tensor<256xf32>) -> tensor<256xf32>
    %between_squares = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q)>],
      iterator_types = ["parallel", "reduction"]
    } ins(%between_centred : tensor<256x256xf32>) outs(%between_squares_to : tensor<256xf32>) {
    ^bb0(%in0: f32, %out: f32):
      %square = arith.mulf %in0, %in0 : f32
      %r = arith.addf %out, %square : f32
      linalg.yield %r : f32
    } -> tensor<256xf32>
    %between_to = tensor.empty() : tensor<256x256xf32>
    %between = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q)>, affine_map<(q, d) -> (d)>, affine_map<(q, d) -> (d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%between_centred, %between_squares, %norm1, %shift1 : tensor<256x256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>) outs(%between_to : tensor<256x256xf32>) {
    ^bb0(%in0: f32, %in1: f32, %in2: f32, %in3: f32, %out: f32):
      %mean = arith.divf %in1, %between_count : f32
      %above = arith.addf %mean, %between_epsilon : f32
      %inverse = math.rsqrt %above : f32
      %scaled = arith.mulf %in0, %inverse : f32
      %r0 = arith.mulf %scaled, %in2 : f32
      %r = arith.addf %r0, %in3 : f32
      linalg.yield %r : f32
    } -> tensor<256x256xf32>
    %up_start_empty = tensor.empty() : tensor<256x1024xf32>
    %up_start = linalg.fill ins(%zero : f32) outs(%up_start_empty : tensor<256x1024xf32>) -> tensor<256x1024xf32>
    %up = linalg.matmul ins(%between, %weight_up : tensor<256x256xf32>, tensor<256x1024xf32>) outs(%up_start : tensor<256x1024xf32>) -> tensor<256x1024xf32>
    %active_half = arith.constant 0.5 : f32
    %active_one = arith.constant 1.0 : f32
    %active_root = arith.constant 0.70710678118654752 : f32
    %active_to = tensor.empty() : tensor<256x1024xf32>
    %active = linalg.generic {
      indexing_maps = [affine_map<(q, f) -> (q, f)>, affine_map<(q, f) -> (q, f)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%up : tensor<256x1024xf32>) outs(%active_to : tensor<256x1024xf32>) {
    ^bb0(%in0: f32, %out: f32):
      %scaled = arith.mulf %in0, %active_root : f32
      %erf = math.erf %scaled : f32
      %above = arith.addf %erf, %active_one : f32
      %half = arith.mulf %in0, %active_half : f32
      %r = arith.mulf %half, %above : f32
      linalg.yield %r : f32
    } -> tensor<256x1024xf32>
    %down_start_empty = tensor.empty() : tensor<256x256xf32>
    %down_start = linalg.fill ins(%zero : f32) outs(%down_start_empty : tensor<256x256xf32>) -> tensor<256x256xf32>
    %down = linalg.matmul ins(%active, %weight_down : tensor<256x1024xf32>, tensor<1024x256xf32>) outs(%down_start : tensor<256x256xf32>) -> tensor<256x256xf32>
    %result_to = tensor.empty() : tensor<256x256xf32>
    %result = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%y, %down : tensor<256x256xf32>, tensor<256x256xf32>) outs(%result_to : tensor<256x256xf32>) {
    ^bb0(%in0: f32, %in1: f32, %out: f32):
      %r = arith.addf %in0, %in1 : f32
      linalg.yield %r : f32
    } -> tensor<256x256xf32>
    return %result : tensor<256x256xf32>
  }
}
{-#
  dialect_resources: {
    builtin: {
      weight_query: "0x040000004453dd3d90d7b6bd248d833da4e7f03db8e0993b3c9dd53cb5fae8bddc13e33de28de93c089d0cbd1d6e803ddf8cf5bc21a071bc9cdd52bd48bd0b3d60ddf73cf873173df10d213c7642ea3ba0d3debac917603d05f3373df226c03d6b906c3dd9a471bd445db13cf7a275bc0decb73ddac10fbc881786bcc0fdf23b15bb833c1256093d1334ffbc4fae39bdd22190bd1bc5a23c58daa7bd14e9debc589a623b2a033c3d75e68fbb8eddaa3ce13d3b3d170282bdd0820e3c269d0ebee97d3bbe2f0cb33db02b5fbcb9077abdb5111fbc2cf8a1bd8257e8bdd162e2bc55310b3d56306ebc900ebd3b69f3613db29bcdbc1c83dc3c245c2b3d950f233c48b4f4bcbff53d3dfb504ebdd39e823dbfe5513d06a9a63dfc0bbd3d0375e7bdcfff643dae532f3bccb1cebd8f4b123daa5608be290e10bd7b16fd3b5350a43b9e58c33cd5ee29bd2e5893bdda1d81bd60284abce16472bd96aa37bdde4d24bc20d7e7bc97accbbdc99740bdf6b83d3d90093d3d615cf0bcf151b83d0aea8a3db50919bc581ad1bcb4bd143dc0c9a13dd910073c29e96a3c9e33523d0c1d89bd1fa2abbd95267fbc6c46783dfd59e93d6739adbce125dc3cac68253d651148bc40698fbc52d5cbbde98e2f3dd1ad71bdbd6eafbd6c795d3db60c00bdda110ebdeaf180bda39da0bb7474603db77fc6b9d190b03dcca6df3daccda7bc149f41bd580a2bbd+262144",
      weight_key: "0x04000000179c6bbbc8cea0bc12cf683d2534b7bdcb55a9bdc4cf013eece2803c7bc1293d5327a63c7ffc413c9d66ff3d7eb4753d3264cf3c0584343df7cb7dbd901d653d41f0943de0acc93c0e7b67bb90e5fe3d47ce74bd6da129bc7da039bc7c018fbd680441bc508435be17f79abb0a0e0ebbc34e64bd06f985bb43ff39bd647ebe3d7bc2b6bdf67a48bdf55d66bd3ece0dbd3c01083d31eb79bdbd81b2bd27d30c3e97140fbcf3b1c4bc9eb08c3c255b963ce0f8dbbde02e8fbd284eb4bdbd19e93d8ba109bd51f8ff3d47de0e3da5d511bd9992903b21ea6c3d38c3bcbdf0ddd33d25acf4bc9bdba8bc158567bde42e95bdd6de66bdf6afa33dc70f593d9233c23d46da623d5aeea83c3d6a153a0f63153ea77798bd3a892abd86cabbbc9acec63d3e788b3d27321cbd8e42653dfdaaef3ddd5d88bdae2b983dad1e113cb6f2923b63213cbd4a12313d1bd1d1bba30b0abde555023d894979bdcfd6bfbaab9a89bdf3ca083de897313ca388a6bdd6a9d93b7a0fe13dd7994c3cdc34033eccbbc03db90ab9bd8f89383d03585dbdb7b2ab3d8c8f37bddd517f3bafa5f43c2e197dbc804c393bfe23e63cdf8981bc9bf278bd9cd7c43d29ed653d0611543ad4de213dad856f3dc656ad3dee170c3d106b04be21f18e3d62bb843d40a4de3d9934f63ba60acf3c39f54cbc399625bde87135bddf95e4bc58e18a3c9c90c4bd47d1913d+262144",
      weight_value: "0x04000000e2f8fc3b5029a93dfd1efabcc18319bd710ebbbdf69d40bdcdb7833ce8e658bcb4b6f53bc837d63cf5cd8bbce5c2be3ddd11a43d7f22ce3da98df23cfd8f38bdc55c673ce56c003dd346f13d5f2f1a3c33e00ebce40b683d4ea5013ed60ac83b85d7d43b30b4e63cba6a04bd66cb6a3c6f76aebce0ad44bc3698afbc63bd083d577c97bc4e73a0bc4bcde4bd3d39803c1395f93c34edd93d4f24933d0c5d1c3d56fa2dbdd7c997bd8010a63c5d4e903d1543a4bda2a342bdd81a1c3ed7f19fbd8405da3c091abc3c37298dbd687634bc6bede23c4b2cc0bd08c29c3d062a4e3cc81f0abd3fba673df56d33bb344d833d4c66063ecd46bdbd5a8db03dd52ef63c65fbbabce633853cb48d173d7814bb3d9efecabd1bf45dbd4bc91bbd93c9fdbc09ab583d5a2c8b3ab84bc2bd84b0913cfc790ebd3dd6d1bcf13d5b3c8fe7c73c22c482bcd7e0b83cd322743ae3d395bd5a72923dacb2c0bdc8bc6bbc3f35e13c67fc0d3d1f76123d8abfc4bc139708be77733ebda05b033dcc3caebddbe394ba38f516bd49fca03b0647c13c52c4c3bca7f0c53d0caa2fbe3360243c1f62c9bd159195bc02dabebc88cfaebd27e9323def2259bc23223c3dd641e2bd04a1e8bd453491bdc26c74bcde1b18bcdf96f43c58bd44bdeea8243d45a51d3d7022833ce04b83bd1dbe89bcff5a483c35e0153d6ead1c3d72dbc9bdc338763d6b68643c+262144",
      weight_out: "0x0400000097728d3d0f428fbd9c25893d4c6eb13d1738013de246c03d8292383debb939bbc8fa173d7317bd3cac83e4bd8e9d7e3c684f92bd436717bc3f6e643dd29b33bb0249c73d8259773d0625afbd8898ee3dd2a9823dc4280abd95734c3c8ae13ebd7b947d3d0646813d691da03b8c7704bcf5a71bbd29ab77bd7888de3a26906abb0bf0b63c2c13da3c46ce19bcc487bd3b8c4eecbc7ea72f3c3692bd3cc99736bc2f236b3dc75a6b3d98d2c03d96d6f0bc138324bd336b4ebcad5a65bd6adb853dcf82bc3c53fe54bdea62efbcb0c5803bf08f133efaec80bdd7311ebdf4d8b13d274d00bcecfafd3c93504e3d15f19cbd2021593d0fe3443d6884cf3d44f0963d284d8f3da2c8c2bc49d1303dd367a0bde7ad1a3eb25540bd066d48bd80aaed3c0e0dfabdd36aaebc417528bc4f9918bd4e72da3c7cc202bc4918773b491bf2ba3e8e64bc3b8e9b3d249b82bc842eb23d92a590bced0741bc76b49a3c4585943ceb1aa33d1e09efbbfe599c3d7de484bdf7d20bb9f95817be02e3003d617d693d278d78bdf77fa9bca049193babdffabc5d6c71bd4876bbbd9524cabcb2eb6dbd460e4fbd0ae8fd3d071ae7bd3805713c7b419cbddac6fc3c56a351bc4c28d8bcdc9f1dbda387603d5795993df7e5b7bd3da69abd40af873d3254ae3ddb343a3d7867723bf1f7253d06d8f7bc36ed09be81b1b7bb36f5863d04724a3d30a5d83c+262144",
      weight_up: "0x040000003666f1bd25559abd4878c9bcf96432bc3d0672bc4083c0bd4a44eabb8c7e39bcd5867b3d799106be2b1b5bbd2f0627be9e89e8bc3ca3babcaa1f69bca37e4cbd9d841f3d369870bd91910dbda7e73ebcc3f28abd10f119bd53a9f23da3f80ebd6a9f403da927c13c1277c6bda454b7bdfeaf9cbc6ea5493dfd92873dbdd861bdcae95dbdd8b10e3de78e0b3eebae543ddb7f273d885b2fbd50122c3d6fac05bd9d32acbdfeae69bde48f80bcb0d3b9bd99408e3db2f94b3c5eef68bd0326d53d7c2d1fbd9af2fe3d95fff4bcca10a23d0312d7bd15b0bd3cb87aa43c3124d1bd071cbd3c1920d0bd10e77dbda667bdbc488c9ebdd7b0773ba696d03d71741d3d856c6dbdad8ee13c87c89e3b29cb8a3bc0021e3de2a599bccee3c43b2db4103c8bc1d33d11e182bc0e3f413d5a8e9bbd136c143e292b3d3d45c7fcbc5a52153d9fd67e3d43fb503d5055f03c9b00b1bd1029acbc870a023e5a58723d9e6f1bbbfc8e713d5197d3bd76856cbd43fd9dbd579cbe3cd75dab3d0aa95bbc45edc3bddc28aebd0e97c23dde6e033d450b093b242ccdbdff8fa23d1f298abc8bbfe6bc723971bdd1780d3dd8d1ef3d0beab73de02dde3c563e35bd491731bdcddf023d07b755bd4572d5bc2544843a8bfca1bd0b503e3d8bf349bc2bd33abd7915c23dd535bf3c9853033c5582fc3d61a501bda6edf23ba1e835bd2406c3bdd9656e3d+1048576",
      weight_down: "0x040000004ad4303c46baa1bc10cdb4bb74736c3d269884bd12beafbc6af7e93ae83bfb3c970c693d7ae5993cfa4807bd0e679a3db45c463d40a2423c971379bd974bea3c91260ebdfeaa6dbd8b3e00bdd814fe3c42b8a1bc7bc52a3ddee1c7bbf5d6823bdd077abd6e39ad3c6f2b253ba3a8ee3b574fde3ba21bcabcbf3eed3cf59a713c622be6bc4a1dfdbbaa08c83bb2b874ba9502c9bcc552b43c4d7601bdbd09f5bc84fce1bcedd31cbd3d3ab3bdc6d95a3d4da0f3bbc52b9fbc61bf1d3cb0f914bce96b943d43494fbd478afc3cbca7c43cca72ea3cbca1f63cbfcd7b3d2bf999bcda414fbc434cd5bbae1e9cbc4bbc883d534b523df09a173aa918dfbc9583513cf625f0bc4396d63c079e39bc17302d3d8028013d6bdf013c7854ee3a5e38f53c1abf5b3bbf4bcebbf2bc87bc48464bbdeeef243c89d33bbbb0e81dbbc5fd423d9144b93cbd2b0f3c4d49d13acb8721bd2bbab0bc9a0f563c08c1a93c63e83bbc43321cbcd419053dabd31abd92332bbde2b81ebdee2cb63c1b8423bdef6f8ebc5f1c533cae230cbc10c0d1bcb77198bcc38fd03c20850e3db1e4d0bad051a93c945b29bd113254bd727f7e3db79d1e3cb09fc63b8eabcdb93999d6bcf98ec03cd37898bd80d61a3d618d433bfcd00dbc19167a3c4018bb3c361e59bbf3c1753d2ed636bd600819bdbcc81a3d6e312dbd3e8f143d9790693c93249e3c0314333d+1048576",
      norm0: "0x04000000a3ac833f45df663f4c175b3f54b38b3f6cfb703f20ca403fbf50653f960d3e3fa3428d3f1d5b433f287f813f966f5f3f3e58883f7162823f8488963f72cc633f7fed743ffca3533fb1c98a3f2c319b3f5faa8a3f3a15583f4c9e743f740a803f76aa873fca796b3f0c9a993f1e34923f533a943f7482703fb8cf833f7d927c3ff963623f6750893f48eb763f36f1843f8860593f5489833f42d2653fde0e873ff689693f28e8833fac54a23fb4d68c3f04796d3f0b9c7c3f9566a43f9fba773fba32a23f40e38f3f42b6893f8eda873fb87b8e3f09827a3fde82983f6412823f88eb703fe8f59e3f58063f3f367d6d3f21be803f76f0703fbaca703fa2d99a3fadc29b3fc028783f0fa3393fa17f8a3fe8a74c3f1447843f83a4823f0020533f0844833f4cb1803f3f45823f44917e3f25ad8f3f586d883fce3e493f04ef653f5e32503f2c09313fb346973f1e45933f12b47b3f1267803f2eff813f423a8c3f1d996e3fe576883f0e3b9a3f8884b03f8e32893f932c793ff6488c3f9085663fc21a773f7926833f35db7f3f8a23893f5f76643ff78a8d3f0ab0713fd88f883f4dab5f3f4292a33fe962653f211d853ffa16863f794f773f1d36693f9e7e8a3fa5bd953f50f0733f4f8e9e3fcb7f7d3f25799d3f49fd8d3f671b883fa430583f4cae943f6853723f554a5b3f08fb863fa8fb8f3f12468c3f3f5f8a3f75e4813f+1024",
      shift0: "0x04000000e3c4223dd072c93b7713523e7fd39fbc6ac14bbb3bea853e695f2c3d2aa296bed2d045beef31083d9e9d73bd448b06be77009f3db7b267be1aaa83bd86c43d3d98fd98bef91dd73c50834e3e4538a4bc7fd5493e75abca3d5501abbdb4e4873e9388cb3df4899f3d29fd2abc52eca93dc635e03d8204c63df21f4a3dd080a23e003be03d7327d83c403a99bc848e56bd50d542bd7da4a63c0841cebd315a08bdd3431e3e233b54bd9395b43dd62cf4bd370e0c3d879ab1bd6770b8bdf19fc23d9aa1e9bd34ad3e3d3bf2a1bdc2bd6dbd6d377ebdd1e323beb761223b8b9dc93d75b6bbbd1bac623ef86d143e20c3253ee860b23b5eea3f3efc4b3dbe47edd0bc1bce13bd8dfe513ed48a223dd31029bc944119bd0f0ff0bbcc4c073debb37f3d0703353d1e112bbd833194bed01b6fbc98db013cde4c7f3e7d85263e57ddac3dfcf5873d5e5f703d932c2ebe8fb51f3e13f943bd744d15be3b666a3efa8dffbc223c343d3e20e2bd5ce42c3e148fc2bd3746ed3b228ad93d5c2e6d3de1da563da56b093ec3512c3ed94d093d99168f3df0a2fc3d814f1bbeb0c6433e4e4e9d3ec9ff56bdf54333be64d4d9bd0518e1bdbee3133e955268be46c88abddd6a163ed41849be82b2f33d25b8f2bd31dbb33db459d3bd0f90dc3d6a935abe9aa53dbd3d6826bd7fcfb43d94200dbe2a0d0d3edd731ebe2fb1133e9bddcbbc5a20dbbc+1024",
      norm1: "0x040000001ed1703f2356703fe5fe7c3fcf41683ff5517f3f89787a3f3bce873faf01553f4c28643fd8cd4b3ff627853f96615f3ff68f473fa972833f5776723f27da7f3fba6d8c3fbeafad3f1a238f3fe3d2873f879b803f0d4c713f2637643fbf3e963ffa15373f2c545a3fee6e633f09ae7c3f9a055f3fc05f943fa4348c3fb762923f3f3a8a3f61e1833f00e9623fd152763feab3973f661a863fa7719c3f96ca973ff5bd7c3fb3146d3feb7e833f3965903fa6da7d3f1dd0663f42b0743f2dc4683fb65b8f3f6bca943f4126693f68ed473f3eae753f2354993fa5d69a3fb809633f7f776c3fb0df743f6711a43f8ac4923fffe2773f10ac8f3fc5ac6e3ff9f5823f9dfb7c3f627f703f71ad8b3fe751933f4075903f7baa823f0398863f0c04a43fe22e623f6db3823feea5983f60c77f3f68ec723f5942833f51f36f3f7c195f3f9f3b803f80ef683f90ed5f3f6dce893fd4974a3f67728f3f90ba6d3fc921893f3863913f706a323ff76d7f3f86094b3f93ff783fb3126c3ff6906a3f2cce803fda778a3ff1aa763ff7ef863fe987833f1e04963ff489833faf36483fa3a87a3f1be2653fc0a3943f14b2783f52fa703ff87b683f309f313faacb803f9d947c3f0c38663fce506f3fcf8b823fc9c4823fcfea433f56c36a3f1b4d743fa7ad583faccd883f83c9833fa090573f14517d3f2aef763fc16b5f3f8ec3913f9f26833f+1024",
      shift1: "0x040000003bb398bb70710b3eed52f23dc951a7bdfc6e7d3d4dd285bdf10fc93c396b913c5ec21c3e52ed913d55477d3dd10b85bd42f364befaaa2bbba60b113dda70f13ce11bfd3d94746ebc6a64e9bc4076a2bb39748ebd7cbf863d12f2d6bd483edfbc5bf82bbe75d08dbe6bcdc9bddf79113e7ba50b3e2758e7bc78ff803da3a6e6bd1970873d8b0ec9bd79c992bdde611fbc8d8a033de4b4983d28382a3ec350e2bd5df7aabd071798bc58c786bc1796cb3d7f06cdbc6e9ef33d706cd8bd131ae1bd9d04e13c9f40583daa5e4a3d8e9c143e0323853d10fc663c0e9ca4bd249be5bd098ca73dd4e0a53d8ee8c2bd71b75bbe1a4a153eabb3de3c9002c73d9608dfbd50eeeebbed2988bb54ffd93c600e1cbec92a17be2e055dbe626d34beaf170d3efcea373ee6649a3de29e183ef9afde3d1ab85cbec466f0bdc5b2ddbdf6ffc3bd724b0b3ee0ff75be2b158e3de1accabde5e2103e0a40653d964684bef0168cbed232fcbc298863bd7300573d14593abe84112fbd917ea03c4735e9bba7fb453d141a7e3d1f38303ee95036beaa97b03da9033a3d1ae037bcc58e683eeb8a43bea5881bbec614b4bd88670b3ed559dfbd09e484be56c9853da7891c3ef1ddec3db9ef35be1c07ac3d37d64ebc0af5e7bcc8ab573dec8fa7bc171502bdf60029bd60da1cbd76c049be302d953d3c47aabdb6e6323ea12bdb3d777dd33cb6ab233d+1024"
    }
  }
#-}
