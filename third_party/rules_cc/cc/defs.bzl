"""The native C++ rules under the names that Bazel 4.2.3's own tools load."""

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_libc_top_alias = native.cc_libc_top_alias
cc_library = native.cc_library
cc_proto_library = native.cc_proto_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
fdo_profile = native.fdo_profile
objc_import = native.objc_import
objc_library = native.objc_library
