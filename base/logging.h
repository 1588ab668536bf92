#ifndef REQUANT_BASE_LOGGING_H_
#define REQUANT_BASE_LOGGING_H_

// glog's logging macros. TensorFlow's headers define macros of the same names;
// this header takes those away and brings glog's in. Include it after every
// TensorFlow header, and include no TensorFlow header after it.

#include "tensorflow/core/platform/logging.h"

#undef LOG
#undef LOG_IF
#undef LOG_EVERY_N
#undef LOG_EVERY_N_SEC
#undef LOG_EVERY_POW_2
#undef LOG_FIRST_N
#undef LOG_TO_STRING
#undef VLOG
#undef VLOG_IS_ON
#undef DVLOG
#undef DLOG
#undef DLOG_IF
#undef DLOG_EVERY_N
#undef PLOG
#undef CHECK
#undef CHECK_EQ
#undef CHECK_GE
#undef CHECK_GT
#undef CHECK_LE
#undef CHECK_LT
#undef CHECK_NE
#undef CHECK_NOTNULL
#undef CHECK_STRCASEEQ
#undef CHECK_STRCASENE
#undef CHECK_STREQ
#undef CHECK_STRNE
#undef DCHECK
#undef DCHECK_EQ
#undef DCHECK_GE
#undef DCHECK_GT
#undef DCHECK_LE
#undef DCHECK_LT
#undef DCHECK_NE
#undef DCHECK_NOTNULL
#undef DCHECK_STRCASEEQ
#undef DCHECK_STRCASENE
#undef DCHECK_STREQ
#undef DCHECK_STRNE
#undef PCHECK
#undef QCHECK

#include <glog/logging.h>

#endif  // REQUANT_BASE_LOGGING_H_
