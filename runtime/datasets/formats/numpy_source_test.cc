#include "runtime/datasets/formats/source_format.h"
#include "runtime/datasets/testing/testing.h"

namespace requant::numpy_source_test {
namespace {

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

template <typename T>
std::string Number(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string NpyWithHeader(const std::string& dictionary,
                          const std::string& data, char version = 1) {
  std::string npy = "\x93NUMPY";
  npy += version;
  npy += '\0';
  npy += version == 1 ? Number<uint16_t>(dictionary.size())
                      : Number<uint32_t>(dictionary.size());
  return npy + dictionary + data;
}

std::string Npy(const std::string& descr, const std::string& shape,
                const std::string& data, char version = 1) {
  return NpyWithHeader(
      absl::StrCat("{'descr': '", descr,
                   "', 'fortran_order': False, 'shape': ", shape, ", }    \n"),
      data, version);
}

struct ZipOptions {
  bool deflate = false;
  // Whether sizes and offsets are in zip64 fields, as NumPy writes them.
  bool zip64 = false;
  // Is added to the size in the directory.
  int size_lie = 0;
  uint32_t checksum_lie = 0;
  uint16_t method = 0;
  uint16_t flags = 0;
};

// Returns an archive of (name, content) entries.
std::string Zip(const std::vector<std::pair<std::string, std::string>>& files,
                const ZipOptions& options = {}) {
  std::string zip, directory;
  for (const auto& [name, content] : files) {
    const std::string packed =
        options.deflate ? Packed(content, ZlibWrapper::kNone) : content;
    const uint16_t method =
        options.method != 0 ? options.method : (options.deflate ? 8 : 0);
    const uint32_t checksum =
        crc32(0, reinterpret_cast<const Bytef*>(content.data()),
              content.size()) ^
        options.checksum_lie;
    const uint64_t size = content.size() + options.size_lie;
    const uint64_t offset = zip.size();
    const std::string extra =
        options.zip64
            ? absl::StrCat(Number<uint16_t>(1), Number<uint16_t>(24),
                           Number(size), Number(packed.size()), Number(offset))
            : "";
    const auto narrow = [&](uint64_t value) {
      return Number<uint32_t>(options.zip64 ? 0xffffffff : value);
    };
    const std::string common = absl::StrCat(
        Number<uint16_t>(options.flags), Number<uint16_t>(method),
        Number<uint32_t>(0), Number(checksum), narrow(packed.size()),
        narrow(size), Number<uint16_t>(name.size()),
        Number<uint16_t>(extra.size()));
    absl::StrAppend(&zip, "PK\x03\x04", Number<uint16_t>(20), common, name,
                    extra, packed);
    absl::StrAppend(&directory, "PK\x01\x02", Number<uint16_t>(20),
                    Number<uint16_t>(20), common, std::string(10, '\0'),
                    narrow(offset), name, extra);
  }
  const uint64_t offset = zip.size();
  zip += directory;
  if (options.zip64) {
    const uint64_t end = zip.size();
    absl::StrAppend(&zip, "PK\x06\x06", std::string(36, '\0'),
                    Number<uint64_t>(directory.size()), Number(offset),
                    "PK\x06\x07", Number<uint32_t>(0), Number(end),
                    Number<uint32_t>(1));
  }
  absl::StrAppend(
      &zip, "PK\x05\x06", std::string(8, '\0'),
      Number<uint32_t>(options.zip64 ? 0xffffffff : directory.size()),
      Number<uint32_t>(options.zip64 ? 0xffffffff : offset),
      Number<uint16_t>(0));
  return zip;
}

// Reads x from an .npy file of these bytes.
ReadResult ReadNpy(const std::string& npy,
                   const std::string& input = "dtype: 'float'") {
  DatasetSpec spec = SpecFromText(
      absl::StrCat("input { feature: 'x' placeholder: 'p' ", input, "}"));
  (*spec.mutable_numpy()->mutable_arrays())["x"] = WriteTestFile("x.npy", npy);
  return ReadAll(spec);
}

std::string NpyError(const std::string& npy,
                     const std::string& input = "dtype: 'float'") {
  return std::string(ReadNpy(npy, input).status.message());
}

// Reads x and the label from .npz files of these bytes.
ReadResult ReadNpz(const Strings& archives) {
  return ReadContents("numpy", archives, R"(
    input { feature: "x" placeholder: "p" dtype: "float" shape: 2 }
    label { feature: "y" dtype: "int64" })");
}

std::string NpzError(const std::string& archive) {
  return std::string(ReadNpz({archive}).status.message());
}

std::string FloatsNpy(const std::vector<float>& values) {
  return Npy("<f4", absl::StrCat("(", values.size() / 2, ", 2)"),
             Bytes(values));
}

std::string LabelsNpy(const std::vector<int64_t>& values) {
  return Npy("<i8", absl::StrCat("(", values.size(), ",)"), Bytes(values));
}

TEST(Npy, ReadsEveryVersion) {
  for (const char version : {1, 2, 3}) {
    const ReadResult result =
        ReadNpy(Npy("<f4", "(3,)", Bytes<float>({1, 2.5, -3}), version));
    ASSERT_EQ(result.status, absl::OkStatus());
    EXPECT_EQ(result.Values(0), (Strings{"1", "2.5", "-3"}));
  }
}

TEST(Npy, TakesTheDictionaryInAnyOrder) {
  EXPECT_EQ(ReadNpy(NpyWithHeader("{\"shape\": (1L,), 'descr': '<f4', "
                                  "'fortran_order' : True}\n",
                                  Bytes<float>({4})))
                .Values(0),
            Strings{"4"});
}

TEST(Npy, ConvertsOnlyWhereEveryValueIsKept) {
  const auto values = [](const std::string& descr, const std::string& data,
                         const std::string& dtype) {
    const ReadResult result =
        ReadNpy(Npy(descr, "(2,)", data), absl::StrCat("dtype: '", dtype, "'"));
    return result.status.ok() ? result.Values(0) : Strings{"refused"};
  };
  const Strings expected = {"1", "2"};
  const Strings refused = {"refused"};
  EXPECT_EQ(values("<f4", Bytes<float>({1, 2}), "double"), expected);
  EXPECT_EQ(values("<f4", Bytes<float>({1, 2}), "bfloat16"), expected);
  EXPECT_EQ(values("<f4", Bytes<float>({1, 2}), "half"), refused);
  EXPECT_EQ(values("<f4", Bytes<float>({1, 2}), "int32"), refused);
  EXPECT_EQ(values("<f8", Bytes<double>({1, 2}), "double"), expected);
  EXPECT_EQ(values("<f8", Bytes<double>({1, 2}), "float"), refused);
  EXPECT_EQ(values("<f8", Bytes<double>({1, 2}), "bfloat16"), refused);
  EXPECT_EQ(values("<f2", std::string("\0\x3c\0\x40", 4), "float"), expected);
  EXPECT_EQ(values("<f2", std::string("\0\x3c\0\x40", 4), "half"), expected);
  EXPECT_EQ(values("|i1", "\1\2", "int32"), expected);
  EXPECT_EQ(values("|i1", "\1\2", "uint8"), refused);
  EXPECT_EQ(values("|u1", "\1\2", "float"), expected);
  EXPECT_EQ(values("|u1", "\1\2", "int8"), refused);
  EXPECT_EQ(values("<i2", Bytes<int16_t>({1, 2}), "float"), expected);
  EXPECT_EQ(values("<u2", Bytes<uint16_t>({1, 2}), "int32"), expected);
  EXPECT_EQ(values("<i4", Bytes<int32_t>({1, 2}), "int64"), expected);
  EXPECT_EQ(values("<i4", Bytes<int32_t>({1, 2}), "float"), refused);
  EXPECT_EQ(values("<i4", Bytes<int32_t>({1, 2}), "double"), expected);
  EXPECT_EQ(values("<u4", Bytes<uint32_t>({1, 2}), "int64"), expected);
  EXPECT_EQ(values("<i8", Bytes<int64_t>({1, 2}), "int64"), expected);
  EXPECT_EQ(values("<i8", Bytes<int64_t>({1, 2}), "int32"), refused);
  EXPECT_EQ(values("<u8", Bytes<uint64_t>({1, 2}), "int64"), refused);
  EXPECT_EQ(values("|b1", std::string("\1\0", 2), "bool"), (Strings{"1", "0"}));
  EXPECT_EQ(values("|u1", "\1\2", "bool"), refused);
  EXPECT_EQ(values("|S3", std::string("1\0\0002\0\0", 6), "string"), expected);
  EXPECT_EQ(values("|S3", std::string("1\0\0002\0\0", 6), "float"), refused);
  EXPECT_EQ(values("<U2", Bytes<uint32_t>({0xe9, 0x1f600, 'x', 0}), "string"),
            (Strings{"\xc3\xa9\xf0\x9f\x98\x80", "x"}));
}

TEST(Npy, SaysWhichTypeCannotBeRead) {
  EXPECT_EQ(NpyError(Npy("<f8", "(1,)", Bytes<double>({1}))),
            "x.npy: it has float64 values, not all of which float can hold; "
            "save the array as one of that type: array.astype(numpy.float32)");
  EXPECT_EQ(NpyError(Npy(">f4", "(1,)", "1234")),
            "x.npy: its elements are of type '>f4', which is big-endian; save "
            "it as little-endian, such as "
            "x.astype(x.dtype.newbyteorder('<'))");
  for (const char* descr :
       {"|O", "<c8", "<M8[ns]", "|V8", "<f16", "", "<f4x"}) {
    EXPECT_EQ(NpyError(Npy(descr, "(1,)", "12345678")),
              absl::StrCat("x.npy: its elements are of type '", descr,
                           "', which cannot be read; float, integer, bool, "
                           "bytes and text arrays can"));
  }
  EXPECT_EQ(NpyError(NpyWithHeader("{'descr': [('a', '<f4')], "
                                   "'fortran_order': False, 'shape': (1,)}",
                                   "1234")),
            "x.npy: its elements are records of several fields; save each "
            "field as an array of its own");
}

TEST(Npy, ComparesTheShapeWithTheDeclaration) {
  const std::string data = Bytes<float>({1, 2, 3, 4});
  EXPECT_EQ(NpyError(Npy("<f4", "(2, 2)", data), "dtype: 'float' shape: 3"),
            "x.npy: its records have the shape [2], and the declaration says "
            "[3]");
  EXPECT_EQ(NpyError(Npy("<f4", "()", Bytes<float>({1}))),
            "x.npy: it is a single value, not an array of records");
  EXPECT_EQ(ReadNpy(Npy("<f4", "(4, 1)", data)).Values(0),
            (Strings{"1", "2", "3", "4"}));
}

TEST(Npy, RefusesFortranOrderWhereItMatters) {
  const auto fortran = [](const std::string& shape, int values) {
    return NpyWithHeader(
        absl::StrCat("{'descr': '<f4', 'fortran_order': True, 'shape': ", shape,
                     "}"),
        std::string(values * 4, '\0'));
  };
  EXPECT_EQ(NpyError(fortran("(2, 2)", 4), "dtype: 'float' shape: 2"),
            "x.npy: it is in Fortran order; save numpy.ascontiguousarray(x)");
  EXPECT_EQ(ReadNpy(fortran("(2, 1)", 2)).status, absl::OkStatus());
}

TEST(Npy, NamesTheRecordThatTheFileEndsIn) {
  const std::string npy = Npy("<f4", "(3,)", Bytes<float>({1, 2, 3}));
  EXPECT_EQ(NpyError(npy.substr(0, npy.size() - 5)),
            "x.npy: it ends within record 1 (counting from 0) of 3");
  EXPECT_EQ(NpyError(npy + "x"),
            "x.npy: it goes on after its last record, 3 in all");
  EXPECT_EQ(NpyError(npy.substr(0, 20)), "x.npy: it ends within its header");
  EXPECT_EQ(NpyError("some text"), "x.npy: it is not an .npy array");
  EXPECT_EQ(NpyError(Npy("<f4", "(1000000000000000,)", "1234")),
            "x.npy: it ends within record 1 (counting from 0) of "
            "1000000000000000");
  EXPECT_EQ(NpyError(Npy("<f4", "(0,)", "")), "no records in x.npy");
}

TEST(Npy, RefusesHeadersThatAreNoDictionaries) {
  for (const char* dictionary :
       {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': "
        "(99999999999999999999,)}"}) {
    EXPECT_EQ(NpyError(NpyWithHeader(dictionary, "")),
              "x.npy: its .npy header cannot be read")
        << dictionary;
  }
}

TEST(Npz, ReadsStoredDeflatedAndZip64Archives) {
  const std::string x = FloatsNpy({1, 2, 3, 4});
  const std::string y = LabelsNpy({0, 1});
  for (const bool deflate : {false, true}) {
    for (const bool zip64 : {false, true}) {
      ZipOptions options;
      options.deflate = deflate;
      options.zip64 = zip64;
      const std::string zip = Zip({{"y.npy", y}, {"x.npy", x}}, options);
      const ReadResult result = ReadNpz({zip, zip});
      ASSERT_EQ(result.status, absl::OkStatus()) << deflate << zip64;
      EXPECT_EQ(result.Values(0),
                (Strings{"1", "2", "3", "4", "1", "2", "3", "4"}));
      EXPECT_EQ(result.batches[0].labels.flat<int64_t>()(3), 1);
    }
  }
}

TEST(Npz, RefusesArraysThatDoNotBelongTogether) {
  EXPECT_EQ(
      NpzError(Zip({{"x.npy", FloatsNpy({1, 2, 3, 4})},
                    {"y.npy", LabelsNpy({0, 1, 2})}})),
      "0.numpy: array \"y\": it has 3 records, and 0.numpy: array \"x\" has "
      "2");
  EXPECT_EQ(NpzError(Zip({{"x.npy", FloatsNpy({1, 2})}})),
            "0.numpy has no array \"y\" (did you mean \"x\"?)");
}

TEST(Npz, RefusesArchivesThatLie) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"x.npy", FloatsNpy({1, 2})}, {"y.npy", LabelsNpy({0})}};
  const size_t bytes = files[0].second.size();
  // Fields: deflate, zip64, size_lie, checksum_lie, method, flags.
  const std::pair<ZipOptions, std::string> cases[] = {
      {{false, false, 0, 1}, "array \"x\": its checksum is wrong"},
      {{false, false, 1},
       absl::StrCat("array \"x\": it unpacks to less than the ", bytes + 1,
                    " bytes that the archive says")},
      {{true, false, -1},
       absl::StrCat("array \"x\": it unpacks to more than the ", bytes - 1,
                    " bytes that the archive says")},
      {{false, false, 0, 0, 0, 1}, "x.npy is encrypted"},
      {{false, false, 0, 0, 12},
       "x.npy is packed by method 12; stored and deflated entries can be "
       "read"}};
  for (const auto& [options, error] : cases) {
    EXPECT_EQ(NpzError(Zip(files, options)), "0.numpy: " + error);
  }
}

TEST(Npz, RefusesWhatIsNoArchive) {
  EXPECT_EQ(NpzError("some text"),
            "0.numpy is not a sound zip archive: its directory is missing");
  EXPECT_EQ(
      NpzError(FloatsNpy({1, 2})),
      "0.numpy is not a sound zip archive: it is an .npy file; name it and "
      "its feature in arrays");
  const std::string zip =
      Zip({{"x.npy", FloatsNpy({1, 2})}, {"y.npy", LabelsNpy({0})}});
  EXPECT_EQ(NpzError(zip.substr(100)),
            "0.numpy is not a sound zip archive: it refers to something beyond "
            "its end");
}

// Only what is read of an entry costs memory, not the size that it claims.
TEST(Npz, ABombIsReadAsAStream) {
  ZipOptions options;
  options.deflate = true;
  const ReadResult result =
      ReadNpz({Zip({{"x.npy", FloatsNpy({1, 2}) + std::string(20 << 20, '\0')},
                    {"y.npy", LabelsNpy({0})}},
                   options)});
  EXPECT_EQ(result.status.message(),
            "0.numpy: array \"x\": it goes on after its last record, 1 in all");
}

TEST(Numpy, AsksForEachArrayOnce) {
  DatasetSpec spec =
      SpecFromText("input { feature: 'y' placeholder: 'p' dtype: 'int64' }");
  (*spec.mutable_numpy()->mutable_arrays())["image"] =
      WriteTestFile("x.npy", LabelsNpy({1}));
  EXPECT_EQ(ReadAll(spec).status.message(),
            "numpy has no array for feature \"y\"");
  spec.mutable_numpy()->add_files(spec.numpy().arrays().at("image"));
  EXPECT_EQ(ReadAll(spec).status.message(),
            "numpy has both files (.npz) and arrays (.npy); give one of them");
}

TEST(Npz, SaysWhichLabelIsNotInTheVocabulary) {
  const std::string archive = Zip({{"x.npy", FloatsNpy({1, 2, 3, 4, 5, 6})},
                                   {"y.npy", Npy("|S3", "(3,)", "dogcowcat")}});
  const ReadResult result = ReadContents("numpy", {archive}, R"(
    input { feature: "x" placeholder: "p" dtype: "float" shape: 2 }
    label { feature: "y" dtype: "string" vocabulary: ["cat", "dog"] })");
  ASSERT_OK(result.status);
  EXPECT_EQ(result.Values(0), (Strings{"1", "2", "5", "6"}));
  EXPECT_EQ(result.bad_messages,
            Strings{"0.numpy: array \"y\": record 1 (counting from 0): label "
                    "\"y\" has \"cow\", which is not in its vocabulary"});
  EXPECT_EQ(result.batches[0].labels.flat<int64_t>()(0), 1);
  EXPECT_EQ(result.batches[0].labels.flat<int64_t>()(1), 0);
}

TEST(Npz, TellsWhatItsArraysAre) {
  const std::string path = WriteTestFile(
      "sample.npz",
      Zip({{"x.npy", FloatsNpy({1, 2, 3, 4})},
           {"y.npy", LabelsNpy({5, 6})},
           {"s.npy", Npy("<U2", "(2,1)", std::string(16, '\0'))},
           {"w.npy", Npy("<u8", "(2,)", std::string(16, '\0'))},
           {"huge.npy", Npy("<f4", "(2,4294967296,4294967296)", "")},
           {"none.npy", Npy("<f4", "()", "1234")},
           {"readme.txt", "no array"}}));
  const auto sample = kNumpyFormat.sample(path);
  ASSERT_OK(sample);
  ASSERT_THAT(*sample, SizeIs(7));
  EXPECT_EQ(sample->at("x").dtype, tensorflow::DT_FLOAT);
  EXPECT_EQ(sample->at("x").elements, 2);
  EXPECT_EQ(sample->at("x").shape, (std::vector<int64_t>{2}));
  EXPECT_EQ(sample->at("y").dtype, tensorflow::DT_INT64);
  EXPECT_EQ(sample->at("y").elements, 1);
  EXPECT_EQ(sample->at("s").dtype, tensorflow::DT_STRING);
  EXPECT_EQ(sample->at("w").dtype, tensorflow::DT_INVALID);
  EXPECT_EQ(sample->at("huge").elements, -1);
  EXPECT_EQ(sample->at("none").dtype, tensorflow::DT_INVALID);
  EXPECT_EQ(sample->at("readme.txt").dtype, tensorflow::DT_INVALID);
}

TEST(Numpy, EstimatesTheNumberOfRecordsFromTheFirstBatch) {
  const std::string npy = LabelsNpy(std::vector<int64_t>(6000));
  DatasetSpec arrays =
      SpecFromText("input { feature: 'y' placeholder: 'p' dtype: 'int64' }");
  DatasetSpec archives = arrays;
  (*arrays.mutable_numpy()->mutable_arrays())["y"] =
      WriteTestFile("many.npy", npy);
  for (const char* name : {"many0.numpy", "many1.npz"}) {
    archives.mutable_numpy()->add_files(
        WriteTestFile(name, Zip({{"y.npy", npy}})));
  }
  for (const auto& [spec, records] :
       {std::pair(arrays, 6000), std::pair(archives, 12000)}) {
    const auto source = OpenBatchSource(spec, {});
    ASSERT_TRUE(source.ok()) << source.status();
    Batch batch;
    ASSERT_TRUE(*(*source)->Next(&batch));
    EXPECT_NEAR((*source)->EstimatedRecords(), records, records / 10);
  }
}

TEST(Numpy, SurvivesMutations) {
  std::mt19937 random(1);
  ZipOptions options;
  std::vector<std::string> seeds;
  for (int i = 0; i < 4; ++i) {
    options.deflate = i % 2 == 1;
    options.zip64 = i / 2 == 1;
    seeds.push_back(
        Zip({{"x.npy", FloatsNpy({1, 2, 3, 4})}, {"y.npy", LabelsNpy({5, 6})}},
            options));
  }
  const std::string npy = FloatsNpy({1, 2, 3, 4});
  const int rounds = FuzzRounds(400);
  for (int round = 0; round < rounds; ++round) {
    const std::string bytes =
        MutatedText(round % 5 == 4 ? npy : seeds[round % 5],
                    {"\xff\xff\xff\xff", "x"}, &random);
    const ReadResult result = round % 5 == 4
                                  ? ReadNpy(bytes, "dtype: 'float' shape: 2")
                                  : ReadNpz({bytes});
    // Whether there is a sample or an error, nothing crashes.
    (void)kNumpyFormat.sample(WriteTestFile("mutated.npz", bytes));
    // If an archive's checksums are right, it has exactly what was written.
    if (result.status.ok() && round % 5 != 4) {
      EXPECT_EQ(result.Values(0), (Strings{"1", "2", "3", "4"}));
    }
  }
}

}  // namespace
}  // namespace requant::numpy_source_test
