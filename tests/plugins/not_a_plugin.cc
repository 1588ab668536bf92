// A shared library that knows nothing of Requant.

extern "C" int not_a_plugin() { return 1; }
