{% from "pieces.mlir" import filled, generic, open, type with context %}
{% set result = type("mn", "i8") %}
module {
  func.func @main(%left: {{ type("mk", "i8") }}) -> {{ result }} {
    %zero = arith.constant 0 : i32
    %zero_left = arith.constant {{ zero_left }} : i32
    %zero_right = arith.constant {{ zero_right }} : i32
    %zero_result = arith.constant {{ zero_result }}.0 : f32
    %scale = arith.constant {{ scale }} : f32
    %least = arith.constant -128.0 : f32
    %most = arith.constant 127.0 : f32
    %right = {{ constant("right", right, "i8") }}
{% print open("%left", "mk", "i8") %}
{% print filled("%start", "mn", "i32", "%zero") %}
    %sums = linalg.quantized_matmul ins(%left, %right, %zero_left, %zero_right : {{ type("mk", "i8") }}, {{ type("kn", "i8") }}, i32, i32) outs(%start : {{ type("mn", "i32") }}) -> {{ type("mn", "i32") }}
{% call generic("%result", [("%sums", "mn", "i32")], "mn", "mn", "i8") %}
      %wide = arith.sitofp %in0 : i32 to f32
      %scaled = arith.mulf %wide, %scale : f32
      %rounded = math.roundeven %scaled : f32
      %shifted = arith.addf %rounded, %zero_result : f32
      %below = arith.minimumf %shifted, %most : f32
      %within = arith.maximumf %below, %least : f32
      %r = arith.fptosi %within : f32 to i8
      linalg.yield %r : i8
{% endcall %}
    return %result : {{ result }}
  }
}
