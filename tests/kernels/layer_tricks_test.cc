#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "tests/kernels/int8_layer.h"
#include "tests/kernels/kernel_graph.h"
namespace requant {
namespace {
// dynamic: feed codes,min_a,max_a,bias
TEST(A, B) {
  for (const char* op :
       {"QuantizedMatMulWithBias", "QuantizedMatMulWithBiasAndRelu",
        "QuantizedMatMulWithBiasAndDequantize"}) {
    Int8Layer layer = RandomLayer(0, 4);
    KernelGraph g;
    bool dq = std::string(op).find("Deq") != std::string::npos;
    std::vector<std::string> in = {
        g.Feed("a", CodeTensor(tensorflow::DT_QUINT8, {64, 128}, layer.codes)),
        g.Constant("b",
                   CodeTensor(tensorflow::DT_QINT8, {128, 48}, layer.weights)),
        g.Feed("bias", FloatTensor({48}, layer.bias)),
        g.Feed("min_a", FloatTensor({}, {0})),
        g.Feed("max_a", FloatTensor({}, {4})),
        g.Constant("min_b", -layer.weight_max),
        g.Constant("max_b", layer.weight_max)};
    if (dq) {
      in.push_back(g.Constant("mo", -1));
      in.push_back(g.Constant("Mo", 1));
    }
    std::vector<AttributeText> at = {
        {"T1", "type: DT_QUINT8"},
        {"T2", "type: DT_QINT8"},
        {"Toutput", dq ? "type: DT_FLOAT" : "type: DT_QINT32"},
        {"input_quant_mode", "s: 'SCALED'"}};
    if (std::string(op).find("Relu") == std::string::npos)
      at.push_back({"Tbias", "type: DT_FLOAT"});
    g.Add("y", op, in, at);
    for (int round = 0; round < 4; ++round) {
      if (round == 1) {
        for (auto& b : layer.bias) b += 3;
        g.FeedAnew("bias", FloatTensor({48}, layer.bias));
      }
      if (round == 2) {
        for (auto& b : layer.bias) b -= 2;
        g.FeedAnew("bias", FloatTensor({48}, layer.bias));
        layer.input_max = 4.00001f;
        g.FeedAnew("max_a", FloatTensor({}, {4.000001f}));
      }
      if (round == 3) {
        layer.input_max = 8;
        g.FeedAnew("max_a", FloatTensor({}, {8}));
      }
      auto o = g.Run(dq ? std::vector<std::string>{"y"}
                        : std::vector<std::string>{"y", "y:1", "y:2"});
      if (!o.ok()) {
        printf("%s\n", o.status().ToString().c_str());
        continue;
      }
      std::vector<double> v;
      if (dq)
        for (float f : Floats((*o)[0])) v.push_back(f);
      else {
        double st = Floats((*o)[2])[0] / 0x1p31;
        for (int c : Codes((*o)[0])) v.push_back(c * st);
      }
      auto e = ExactOutputs(layer);
      if (std::string(op).find("Relu") != std::string::npos)
        for (auto& x : e) x = std::max(x, 0.);
      printf("%s round %d: diff %g\n", op, round, LargestDifference(v, e));
    }
  }
}
}  // namespace
}  // namespace requant
