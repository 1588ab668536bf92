#include "base/message/message_json.h"

#include <limits>

#include "base/message/json_example.pb.h"
#include "base/testing/testing.h"

namespace requant::message_json_test {
namespace {

TEST(MessageJson, HasEveryFieldInTheOrderOfTheFile) {
  EXPECT_EQ(MessageJson(JsonExample()),
            R"({"text": "", "number": 0, "share_of_1": 0, "note": null, )"
            R"("count": null, "range": [0, 0], "interval": null, )"
            R"("part": null, "more": [], "names": [], "state": "not_run"})");
}

TEST(MessageJson, HasWhatIsSet) {
  JsonExample example;
  example.set_text("a\"b");
  example.set_number(-7);
  example.set_share(0.1);
  example.set_note("n");
  example.set_count(0);
  example.mutable_range()->set_high(2.5);
  example.mutable_interval()->set_low(-1);
  example.mutable_part()->mutable_next()->set_good(true);
  example.add_more()->set_good(true);
  example.add_more();
  example.add_name("x");
  example.add_name("");
  example.set_state(JsonExample::DONE);
  EXPECT_EQ(MessageJson(example),
            R"({"text": "a\"b", "number": -7, "share_of_1": 0.1, "note": "n", )"
            R"("count": 0, "range": [0, 2.5], "interval": [-1, 0], )"
            R"("part": {"good": false, "next": {"good": true, )"
            R"("next": null}}, "more": [{"good": true, "next": null}, )"
            R"({"good": false, "next": null}], "names": ["x", ""], )"
            R"("state": "done"})");
}

TEST(MessageJson, IsNullWhereThereIsNoValue) {
  JsonExample example;
  example.set_share(std::numeric_limits<double>::quiet_NaN());
  example.set_note("");
  example.set_state(JsonExample::NONE);
  EXPECT_THAT(MessageJson(example),
              AllOf(HasSubstr(R"("share_of_1": null, "note": null)"),
                    HasSubstr(R"("state": null)")));
}

TEST(MessageJson, HasBytesAsText) {
  JsonExample example;
  example.set_text("\xc3\xa4\xff");
  EXPECT_THAT(MessageJson(example), HasSubstr("\"\xc3\xa4\\ufffd\""));
}

}  // namespace
}  // namespace requant::message_json_test
