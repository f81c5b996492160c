#ifndef DLD_CCURL_H
#define DLD_CCURL_H
#include <curl/curl.h>
#endif
