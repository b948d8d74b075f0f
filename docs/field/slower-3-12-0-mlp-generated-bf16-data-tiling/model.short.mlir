#left = affine_map<(d0, d1, d2) -> (d0, d2)>
#right = affine_map<(d0, d1, d2) -> (d2, d1)>
#product = affine_map<(d0, d1, d2) -> (d0, d1)>
#bias = affine_map<(d0, d1) -> (d1)>
#same = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%arg0: tensor<32x1024xbf16>) -> tensor<32x1024xbf16> {
    %zero = arith.constant 0.0 : bf16
    %empty = tensor.empty() : tensor<32x1024xbf16>
    %zeros = linalg.fill ins(%zero : bf16) outs(%empty : tensor<32x1024xbf16>) -> tensor<32x1024xbf16>
    %bias0 = arith.constant dense_resource<layer0_bias> : tensor<1024xbf16>
    %weight0 = arith.constant dense_resource<layer0_weight> : tensor<1024x1024xbf16>
    %product0 = linalg.generic {indexing_maps = [#left, #right, #product],
        iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%arg0, %weight0 : tensor<32x1024xbf16>, tensor<1024x1024xbf16>) outs(%zeros : tensor<32x1024xbf16>) {
    ^bb0(%in: bf16, %in_0: bf16, %out: bf16):
      %multiplied = arith.mulf %in, %in_0 : bf16
      %sum = arith.addf %out, %multiplied : bf16
      linalg.yield %sum : bf16
    } -> tensor<32x1024xbf16>
    %biased0 = linalg.generic {indexing_maps = [#bias, #same], iterator_types = ["parallel", "parallel"]}
        ins(%bias0 : tensor<1024xbf16>) outs(%product0 : tensor<32x1024xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %sum = arith.addf %in, %out : bf16
      linalg.yield %sum : bf16
    } -> tensor<32x1024xbf16>
    %y0 = linalg.generic {indexing_maps = [#same], iterator_types = ["parallel", "parallel"]} outs(%biased0 : tensor<32x1024xbf16>) {
    ^bb0(%out: bf16):
      %above = arith.maximumf %out, %zero : bf16
      linalg.yield %above : bf16
    } -> tensor<32x1024xbf16>
    %bias1 = arith.constant dense_resource<layer1_bias> : tensor<1024xbf16>
    %weight1 = arith.constant dense_resource<layer1_weight> : tensor<1024x1024xbf16>
    %product1 = linalg.generic {indexing_maps = [#left, #right, #product],
        iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%y0, %weight1 : tensor<32x1024xbf16>, tensor<1024x1024xbf16>) outs(%zeros : tensor<32x1024xbf16>) {
    ^bb0(%in: bf16, %in_0: bf16, %out: bf16):
      %multiplied = arith.mulf %in, %in_0 : bf16
      %sum = arith.addf %out, %multiplied : bf16
      linalg.yield %sum : bf16
    } -> tensor<32x1024xbf16>
    %biased1 = linalg.generic {indexing_maps = [#bias, #same], iterator_types = ["parallel", "parallel"]}
        ins(%bias1 : tensor<1024xbf16>) outs(%product1 : tensor<32x1024xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %sum = arith.addf %in, %out : bf16
      linalg.yield %sum : bf16
    } -> tensor<32x1024xbf16>
    %y1 = linalg.generic {indexing_maps = [#same], iterator_types = ["parallel", "parallel"]} outs(%biased1 : tensor<32x1024xbf16>) {
    ^bb0(%out: bf16):
      %above = arith.maximumf %out, %zero : bf16
      linalg.yield %above : bf16
    } -> tensor<32x1024xbf16>
    %bias2 = arith.constant dense_resource<layer2_bias> : tensor<1024xbf16>
    %weight2 = arith.constant dense_resource<layer2_weight> : tensor<1024x1024xbf16>
    %product2 = linalg.generic {indexing_maps = [#left, #right, #product],
        iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%y1, %weight2 : tensor<32x1024xbf16>, tensor<1024x1024xbf16>) outs(%zeros : tensor<32x1024xbf16>) {
    ^bb0(%in: bf16, %in_0: bf16, %out: bf16):
      %multiplied = arith.mulf %in, %in_0 : bf16
      %sum = arith.addf %out, %multiplied : bf16
      linalg.yield %sum : bf16
    } -> tensor<32x1024xbf16>
    %biased2 = linalg.generic {indexing_maps = [#bias, #same], iterator_types = ["parallel", "parallel"]}
        ins(%bias2 : tensor<1024xbf16>) outs(%product2 : tensor<32x1024xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %sum = arith.addf %in, %out : bf16
      linalg.yield %sum : bf16
    } -> tensor<32x1024xbf16>
    %y2 = linalg.generic {indexing_maps = [#same], iterator_types = ["parallel", "parallel"]} outs(%biased2 : tensor<32x1024xbf16>) {
    ^bb0(%out: bf16):
      %above = arith.maximumf %out, %zero : bf16
      linalg.yield %above : bf16
    } -> tensor<32x1024xbf16>
    return %y2 : tensor<32x1024xbf16>
  }
}
{-#
  dialect_resources: {
    builtin: {
      layer0_bias: "0x02000000b3bde7bc9fbcbf3cd93c413d243c4ebdb4bdb4bc793d42bdb7bcb03cffbc7f3c873dd3bd243d5bbd993dccbc0a3d7d3c153d17be363dde3b9b3c92bc103d99bbd53b363d7a3d043d083d073c44bdc33dbf3cbcbd5ebc713cb03cd2bc673c673c27bdb8bc2f3d6abcc1bc233d623c343d80bdddbdb03c893da03c633dc43b033dc3bbfbbc89bb473d9ebba73d493d4bbdbabd2ebb29bcccbcf8bcf03dabbd64bca5bd243d3bbdcf3c07bc4e3c73bd0bbd683d6c3cf5bb233d2bbb4cbc50bd863d9fbc63bc04bc833b513cc6bc0e3d27bc6f3dd43c28bd873c56bccebc1abcf5bcd93d7f3d14be1c3d783b563b313eafbc153daabd0f3daa3d083db6bc243b9a3c02be773dd6bc2fbd883da6bd3bbd3fbd8f3df93c083dd0bc273c2cbd263d1b3d85bc263d87bcbd3cbabcbebbe93cb93c4a3d64bdb4bbc8bc933b5dbd12bd7b3c04bc1f3c39bd67bdaabce53d1dbc22bde03c183d87bd4bbd3f3dacbb07bdb23d5b3da1bd0ebcf1bcc8bb123c013c53bde9bc64bc6cbdc5bc6fbccebd9c3dbbbbefbd083c2abd04bd193d993c523c433d9bbca63dab3d123d43bd12bd883d243d2d3b99bdd93dc13d623d36bd7a3d13bdb73daf3d863ce53d00bd1a3d393cd9bbbd3de83c163aa1bd273d22bd3ebdcbbca83dccb809bc0ebb3d3d243d8fbd993c803cd23ce4bc37bd043e0e3d8b3ce53c66bc59bdbfbd11bdb13ce83de33cae3b+2048",
      layer0_weight: "0x020000004a3defbce33c2dbdb63b623bdabcc3bc523bb6bc11bdf33c513d33bde9bc2abd27bc9c3d2cbd473d003de23c2b3d7dbc8f3c1abd6d3d21bd3b3d60bdefbabe3bcf3ccbbd5dbdf53dc63b81bbdb3c183bf63c5cbdc8bc483d05bcb0bc04bc7cbba83df33b9e3c50bc053c02bd493c1abca23d16bc843c7cbd1e3d363cb9bc9cbd27bd643dda3a57bd5b3c6d3d3b3d3e3bacbb913dc33bd53c54bdae3b69bd543c38b99ebc24bd563d0a3c31bd4e3d13bd2bbd4abd0f3d26bc703d053dbf3d0e3d873d3bbe83bd8a3d13bb853d51bd98bbfebccf3cd1bb9e3c9cbd1abd843b113d9e3c283dba3bd1bc7e3dc5bb333b693d5bbd2abdeb3c053c15bd593d81bd59bd913d0f3dadbc9abd1dbd833c15bd68bbe7bc7d3c803ded3c993df1bc51ba25bdebbcb23cad3b863ca8bc83bbac3d563d6f3d473d12bdff3d403cd03cdfbc343c503c793c1fbb1c3dee3c723d323dbd3c88bdee3cdcbcb33c7bba1c3d70bd8d3d0b3d893d51bd0f3c4f3c1f3b483d49bdfbbc6abdc53c4d3d02bca6bd32bdcd3c79bd47bcc9bda53dcb3c65bc61bdcd3cd6bca1bbfcbb0fbd2a3c1ebd9bbc86bd01bdd03dc3bd093bc63cfe3bdc3cabbdae3d0ebc203d9d3d423d32bd163d32bd24bd7a3bfbbc4a3b0cbd7e3cb2bd5cbc33ba99bcec3c23bc9dbc2abdf9bcb73b64bde9bc563d55bd4abd23bc7e3bf7bcf7bbb33d9abded3b20bd7b3d063bba3d+2097152",
      layer1_bias: "0x020000000dbd5a3d383e0ebd48bdb13c333d153d173c6f3d12bd5abd17bd813d613df53b84bc933c73bd15bd383d743d94bdb63d95bd4dbd913db23df5bc7b3d433cc2bc27bb3e3d68bce9bd9ebdc73bccbd3d3c583c8f3d19bd0b3eb03ba9bd60bdccbbe4bcd03b8f3d1abcbebccfbc283cc1bd3f3dda3c763d853da43d653d263d73bd293e84bd7cbd0c3e6abd9ebd67bd963dfabda13dcd3cd03d11bd0ebd543b07ba41bd1f3dab3c86bde5bd2bbd0b3bda3cb6bc95bd91bb433ce2bcb33c803d9b3c57bc24bd05bd69babd3c12bd133c6cbad63cb93a9abbf23dce3bd9bc18bd85bda8ba92bca63c10be4d3dc5bdc6bdb7bd863c4abdb43b9fbb32bcb63c0dbd0ebdb73ce53d913c283c19bcadbd99bc493dbbba8f3c133dc93c093c9e3d27bd7a3d193d8dbc173c2e3d5bbafcbbc23dd4bbb03ccfbc2a3c643c043d32bb83bd663d3bbd9bbce53cf6bc6dbd88bdaf3cbebb903d50bde73c033dd63c593d76bc82bdf6ba5fbd0b3bd73c683c58bd903d433d323c6bbd7cbd853d2d3df93b473d96bcb43cb23c9f3dcf3d7abc063dd53ca8bd42bdedbad6b8f3bc5f3c8abd28bca8bd173dcb3c213d0abdf6bd133c58bd3cbd493d593d57bde43ca9bd1d3c923c583da43cfd3c66bda13daf3cd03ba93d85bcbe3d853d103d0c3da93c26bc9ebd953d38bc933dd43c0a3eb23c853c19bdcc3d5abc923d3a3d8b3b983dd33dfebd03bc+2048",
      layer1_weight: "0x02000000d43cffbc1fbd653cc53b373d2d3c9f3cc4ba623dacbc46bd5d3da83c213d9dbb943c693d4bbbcdbc26bd91bca0bdb1bd83bd2a3d3c3da4bc04bd30bde53c643d64bd89bcac3c953de53c9abc6cbdd9bda9bda3bc123dde3c0dbd8a3d263dc53c7d3d5cbd49ba373cb0bd7c3de63c31bdbc3dd33be43b283d3d3dd53d6ebd23bd4ebb5d3d3a3debbce43c303d85bd9b3df2bc183d333d0bbd4abdd3bc5ebd9fbb08bd603d263d783d9c3dfcbb42bdb83d243d733d773d813d6e3cd53ddebd67bc4abd8ebc05bdf43c2e3cafbc0e3d583d0a3d4abcc1ba66bc243d853d063dcebd95bd98bdf63cbfbc743dd73c963dda3ba0bc3d3d723c013d1bbba33d243d1bbda63d36bc723d273b7b3d8fbd1f3d493d7fbcd03c5fbc663c073cb8bd60bc16bd03bc05bdf7bbac3ca9bdecbc773c8dbc45bd21bda03cd13c20bd68bd05bda4bc6dbda8bc973c953c743d81bdb7bc553d3abd923d9a3cd63b253dc63c13bd0f3d283dd43c45bd35bcdebcc33c973d183cea3b35bdf6ba32bcd8bb273d483d303d3ebc85bd30bd8c3d743c0c3b803d7b3c763c703d89bd6b3dd7bdeb3cf33ce23c633b25bb853c8c3c4c3d52bd653c8b3c2a3d89bbc1bb32bd1bbd223cdd3b433c7e3cc73c6fbda2bb29ba8bba97bd12bda23bca3c34bdf4bb0e3d123ca1bd45bdf43c483c2dbdcfbc2a3d933d23bd30bc6d3d1f3c783c0a3daabcaabda23cf739+2097152",
      layer2_bias: "0x02000000b93d8c3bb8bc17bc1c3d80bbb8bd033df83c573d25bdae3d973c5e3c0abc5c3d88bdb13d9dbdb33cadbcda3c243c5bbd243d263da3bc89bc233dbc3d923df5bc313d41bd07be83bc773d1c3c9abc4abcf5bcbdbd8cbb333d6a38b23d9c3d383c053d35bd483c323d203df5bc8c3dc63ced3bd33d723d30ba793c38bdd2bd3fbca9bc09bdea3b183da13b973d583daebd0e3dbabd57bd80bd3e3c8dbc82bd8b3d27bd363d13bd36bd1f3d893d083d42bdbfbdf53c1f3c673d79bba93db3bca53d083d5a39a4bc2bbdb03b2ebde43cc5bcf33cf53c08bca13d61bd493d0e3c5abd2b3b61bcdabb423dcdbd973d7dbd913d373ca1bc073cb93c0b3d85bdb33c993d97bb163cd73be43ab4bc593d893cb63d9cbda83d4a3dbc3daabdb63a1bbd7dbd5dbbc9bc203cb33c2a3d3a3dce3cd0bc6cbbdbbc02bd803db93ce8bdff3c833da83c013e48bbfdbb3e3c32bd683d8e3bdabda33c26bdb73db7bd8dbc9b3d0b3d743d003d29bd0bbdad3c823b36bd8dbcb4bc8a3d723d13bc9b3c12bd9a3d07bd61bde13db83d88bd643d6f3c42bc40bd493ba23d72bcdb3bf93cc23be6bc66bb903a4c3ce43c2fbd933ddd3a3e3d04bcbbbcb13c193c78bda8bc4cbdd4bcec3cfbbb89bd173da43d98bd5a3d9b3da43d0c3c343db0bd8cbc323d11bd58bdb03c233d0b3d953cb739953d01bc37ba1d3cfdbcae3d1cbdb23c41bd74bcad3c9c3c+2048",
      layer2_weight: "0x020000009abce03bac3a19bd873cf9bd443d53bd13bdae3d803c8fbd5c3bc33bc63c7dbaa93d163da0bc963d5e3d743dd13d9c3d82bde43c843ba13b6ebda53cc9bb3ebc323ddfbb0a3e71bd18bd3fbd8dbb45bd833cbe3b653d9e3c02bc96bd26bc553dc6bbb5bc043d0fbbdbbc58bc033cc33c2abdb5bc003d25bd13bd87bc3abd91bc21bcf2bc53bde1bc0d3d04bd41bd0dbd1bbd0bbaf3bcc6bcaa3dfbbc9ebb59bdc2bcb2bd993958bd89bc6d3d883dfd3cc83ccc3c463d22bd293d693c953c053d343d29bc303d5cbc18bd7c3caf3d243b003d0fbaa1bdd7bc53bb703cbebc7d3c34bdb23cc03a053ddfbcd93bcebb41bda23c22bc113d943b84bdc1bd85bc75bd4abd843c1fbc0f3db2bb60bd433d53bd553d10bd9f3b84bb85bd633cd33ba1bd953d223d1cbd33bda1bb77bd20bd18bd393dd23b273c3c3bdbbdb83b4abb8dbd06bd2a3cb7bd69bdbebc47bd623d1d3ca83ddc3d903d74bbc83d60bd3cbc8f3c923cb93c4cbc38bd133d90bc6a3df6b716beae3b103b1dbde73b0e3da03dc6bd0d3d85bcb13d02bd063eaf3db7bd1f3d443b65bc053c78bdbdbc2c3ca23cee3be13c91bc293d153d95bc5abd99bc89bd08bd943c8cbc6b3d1e3db6bb6e3c58bd72bda23d0c3e37bcfb3d903d923c84bc463df2bb01bdcb3c333d2dbdf73affbc4e3bb33c4a3dadbc5a3d66bd71bb4cbd173d60bdafbc233c5cbbedbbf8bb593a+2097152"
    }
  }
#-}
